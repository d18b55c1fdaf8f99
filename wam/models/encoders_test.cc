// The frozen encoders: full-size graphs for planning, causality, determinism, bad configurations.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "wam/base/error.h"
#include "wam/base/philox.h"
#include "wam/exec/executor.h"
#include "wam/graph/verify.h"
#include "wam/models/stand_ins.h"
#include "wam/models/vae.h"

namespace wam {
namespace {

using Build = std::function<void(Graph&, ParamUser&)>;

// A target that has every kernel and needs no workspace: what planning sees without a device.
Target planning_target() {
  return {.name = "planning",
          .has_kernel = [](std::string_view) { return true; },
          .workspace_bytes = [](const Step&) { return int64_t{0}; }};
}

Program plan(ParamSet& set, DType dtype, const Build& build) {
  Graph graph(set.name());
  Builder b(graph);
  ParamUser params(b, set, dtype);
  build(graph, params);
  verify(graph);
  return lower(graph, planning_target());
}

int64_t region_bytes(const Program& program) {
  int64_t total = 0;
  for (const Region& region : program.regions) {
    if (region.name != "inputs") total += region.bytes;
  }
  return total;
}

// Bytes of the padded flat buffers: what the plan must have reserved for bf16 weights. Each region
// is rounded up to the arena's alignment.
void expect_bf16_bytes(const Program& program, const ParamSet& set) {
  const auto slack = static_cast<int64_t>(set.buffers().size()) * 255;
  EXPECT_LE(region_bytes(program), 2 * set.num_padded_elements() + slack);
  EXPECT_GE(region_bytes(program), 2 * set.num_elements());
}

TEST(FullSize, Umt5Xxl) {
  ParamSet set("umt5", false);
  const Program program = plan(set, DType::kBF16, [](Graph& graph, ParamUser& params) {
    const ValueId ids = graph.add_input("ids", {DType::kI32, Shape{1, 512}});
    const ValueId mask = graph.add_input("mask", {DType::kF32, Shape{1, 512}});
    graph.add_output("prompt", build_umt5(params, umt5_xxl(), ids, mask).prompt);
  });
  const int64_t layer = 4 * 4096 * 4096 + 3 * 4096 * 10240 + 2 * 4096 + 32 * 64;
  EXPECT_EQ(set.num_elements(), int64_t{256384} * 4096 + 24 * layer + 4096);
  EXPECT_EQ(set.num_elements(), 5'680'910'336);
  expect_bf16_bytes(program, set);
  EXPECT_EQ(program.outputs.at(0).operand.type.shape, (Shape{1, 512, 4096}));
}

TEST(FullSize, ClipVitH) {
  ParamSet set("clip", false);
  const Program program = plan(set, DType::kBF16, [](Graph& graph, ParamUser& params) {
    const ValueId x = graph.add_input("picture", {DType::kF32, Shape{1, 160, 320, 3}});
    graph.add_output("tokens", build_clip(params, clip_vit_h(),
                                          clip_preprocess(params.builder(), clip_vit_h(), x)));
  });
  // The published tower has 632,076,800; the last block, the final norm and the head are not used.
  const int64_t block = 4 * 1280 * 1280 + 4 * 1280 + 8 * 1280 * 1280 + 5 * 1280 + 4 * 1280;
  EXPECT_EQ(set.num_elements(), 632'076'800 - block - 2 * 1280 - 1280 * 1024);
  expect_bf16_bytes(program, set);
  EXPECT_EQ(program.outputs.at(0).operand.type.shape, (Shape{1, 257, 1280}));
}

TEST(FullSize, Vae) {
  for (const auto& [config, height, width] :
       {std::tuple{vae_wan22(), 160, 320}, std::tuple{vae_wan21(), 352, 640}}) {
    ParamSet set("vae", false);
    const Program encode = plan(set, DType::kBF16, [&](Graph& graph, ParamUser& params) {
      const ValueId u8 = graph.add_input("frames", {DType::kU8, Shape{1, 33, 256, 512, 3}});
      const ValueId video = frames_to_video(params.builder(), u8, height, width);
      graph.add_output("latents", vae_encode(params, config, video));
    });
    expect_bf16_bytes(encode, set);
    const int64_t stride = config.spatial_stride();
    const Shape latents{1, 9, height / stride, width / stride, config.z_dim};
    EXPECT_EQ(encode.outputs.at(0).operand.type.shape, latents);
    plan(set, DType::kBF16, [&](Graph& graph, ParamUser& params) {
      const ValueId z = graph.add_input("z", {DType::kF32, latents});
      const ValueId video = vae_decode(params, config, z);
      EXPECT_EQ(params.builder().shape(video), (Shape{1, 33, height, width, 3}));
      graph.add_output("video", video);
    });
    std::printf("VAE z %ld: %ld parameters, encode arena %.2f GB, %.1f TFLOP\n", config.z_dim,
                set.num_elements(), encode.arena.peak * 1e-9, encode.cost.flops * 1e-12);
  }
}

// A stand-in on the CPU with weights from a seed.
class StandIn {
 public:
  StandIn(DType dtype, const Build& build) : dtype_(dtype) {
    Graph graph("stand_in");
    Builder b(graph);
    ParamUser params(b, set_, dtype);
    build(graph, params);
    verify(graph);
    program_ = lower(graph, device_->target());
    const Program* programs[] = {&program_};
    memory_ = device_->allocate(combine(programs));
    executor_ = device_->load(program_, memory_, {.poison = true});
    for (const Param& param : set_.params()) {
      for (const ParamPart& part : param.parts) {
        HostTensor value(DType::kF32, part.shape);
        initialise(part, 3, value.as<float>());
        const HostTensor typed = value.to(dtype);
        memory_->write_region(param.region,
                              (param.offset_elements + part.offset_elements) * size_bytes(dtype),
                              typed.data(), typed.size_bytes());
      }
    }
  }
  HostTensor run(const std::map<std::string, HostTensor>& inputs, const std::string& output,
                 int threads = 2) {
    const int saved = omp_get_max_threads();
    omp_set_num_threads(threads);
    for (const auto& [name, value] : inputs) executor_->write(name, value);
    executor_->run();
    omp_set_num_threads(saved);
    return executor_->read(output);
  }

 private:
  DType dtype_;
  std::unique_ptr<Device> device_ = make_cpu_device();
  ParamSet set_{"stand_in", false};
  Program program_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Executor> executor_;
};

HostTensor random_video(const Shape& shape, uint64_t index) {
  Random random(5, RandomUse::kTest, 0, index);
  HostTensor video(DType::kF32, shape);
  for (float& x : video.as<float>()) x = static_cast<float>(2 * random.uniform() - 1);
  return video;
}

bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

double relative(const HostTensor& got, const HostTensor& want) {
  const HostTensor a = got.to(DType::kF64), b = want.to(DType::kF64);
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.as<double>().size(); ++i) {
    difference += std::pow(a.as<double>()[i] - b.as<double>()[i], 2);
    norm += std::pow(b.as<double>()[i], 2);
  }
  return std::sqrt(difference / norm);
}

Build encode_of(const VaeConfig& config, const Shape& video, DType dtype) {
  return [=](Graph& graph, ParamUser& params) {
    graph.add_output("z", vae_encode(params, config, graph.add_input("video", {dtype, video})));
  };
}

// Frames of latents [B, F, ...] flattened to bytes comparable one by one.
HostTensor latent_frames(const HostTensor& z, int64_t count) {
  const int64_t frame = z.num_elements() / z.shape()[1];
  HostTensor out(DType::kF32, Shape{count, frame});
  std::copy_n(z.as<float>().begin(), count * frame, out.as<float>().begin());
  return out;
}

VaeConfig small_wan21() { return {.kind = VaeKind::kWan21, .dim = 8, .dec_dim = 8, .z_dim = 4}; }

TEST(Vae, LatentsDependOnThePastAlone) {
  for (const VaeConfig& config : {stand_in_vae(), small_wan21()}) {
    const Shape shape{1, 9, 32, 32, 3};
    StandIn encoder(DType::kF32, encode_of(config, shape, DType::kF32));
    HostTensor video = random_video(shape, 0);
    const HostTensor z = encoder.run({{"video", video}}, "z");
    // Frame 5 is the first of latent frame 2.
    for (float& x : video.as<float>().subspan(5 * 32 * 32 * 3)) x = -x;
    const HostTensor changed = encoder.run({{"video", video}}, "z");
    EXPECT_TRUE(same_bits(latent_frames(z, 2), latent_frames(changed, 2)));
    EXPECT_GT(relative(changed, z), 0.01);
    // A shorter clip gives the same latents; not bitwise (vae.h).
    const Shape shorter{1, 5, 32, 32, 3};
    HostTensor head(DType::kF32, shorter);
    std::copy_n(random_video(shape, 0).as<float>().begin(), head.num_elements(),
                head.as<float>().begin());
    StandIn short_encoder(DType::kF32, encode_of(config, shorter, DType::kF32));
    EXPECT_LE(relative(short_encoder.run({{"video", head}}, "z"), latent_frames(z, 2)), 1e-6);
  }
}

TEST(Vae, BitsDoNotDependOnThreads) {
  for (const VaeConfig& config : {stand_in_vae(), small_wan21()}) {
    const Shape shape{2, 5, 32, 32, 3};
    StandIn encoder(DType::kF32, encode_of(config, shape, DType::kF32));
    const HostTensor video = random_video(shape, 0);
    const HostTensor z = encoder.run({{"video", video}}, "z", 1);
    EXPECT_TRUE(same_bits(z, encoder.run({{"video", video}}, "z", 2)));
  }
}

TEST(Vae, SamplesOfABatchDoNotMix) {
  const Shape one{1, 5, 32, 32, 3}, two{2, 5, 32, 32, 3};
  StandIn single(DType::kF32, encode_of(stand_in_vae(), one, DType::kF32));
  StandIn pair(DType::kF32, encode_of(stand_in_vae(), two, DType::kF32));
  HostTensor video = random_video(two, 0);
  HostTensor first(DType::kF32, one);
  std::copy_n(video.as<float>().begin(), first.num_elements(), first.as<float>().begin());
  const HostTensor z = single.run({{"video", first}}, "z"),
                   both = pair.run({{"video", video}}, "z");
  HostTensor half(DType::kF32, z.shape());
  std::copy_n(both.as<float>().begin(), z.num_elements(), half.as<float>().begin());
  EXPECT_LE(relative(half, z), 1e-6);  // not bitwise (vae.h)
  for (float& x : video.as<float>().subspan(first.as<float>().size())) x = -x;
  const HostTensor other = pair.run({{"video", video}}, "z");
  EXPECT_EQ(std::memcmp(other.data(), both.data(), static_cast<size_t>(z.size_bytes())), 0);
}

TEST(Vae, FloatAgreesWithDouble) {
  const Shape shape{1, 5, 32, 32, 3};
  const HostTensor video = random_video(shape, 0);
  StandIn narrow(DType::kF32, encode_of(stand_in_vae(), shape, DType::kF32));
  StandIn wide(DType::kF64, encode_of(stand_in_vae(), shape, DType::kF64));
  // Rounding of about 30 layers of sums of a few hundred terms.
  EXPECT_LE(relative(narrow.run({{"video", video}}, "z"),
                     wide.run({{"video", video.to(DType::kF64)}}, "z")),
            3e-6);
}

TEST(Vae, DecodesASingleFrameAndAClip) {
  for (const VaeConfig& config : {stand_in_vae(), small_wan21()}) {
    const int64_t stride = config.spatial_stride();
    for (const int64_t frames : {1, 3}) {
      const Shape z{1, frames, 2, 2, config.z_dim};
      StandIn decoder(DType::kF32, [&](Graph& graph, ParamUser& params) {
        graph.add_output("video",
                         vae_decode(params, config, graph.add_input("z", {DType::kF32, z})));
      });
      const HostTensor video = decoder.run({{"z", random_video(z, 1)}}, "video");
      EXPECT_EQ(video.shape(), (Shape{1, 4 * (frames - 1) + 1, 2 * stride, 2 * stride, 3}));
      for (const float x : video.as<float>()) ASSERT_TRUE(std::isfinite(x));
    }
  }
}

TEST(Vae, MeasuredStatisticsStandardiseLatents) {
  const Shape shape{2, 5, 32, 32, 3};
  VaeConfig config = stand_in_vae();
  StandIn raw(DType::kF32, encode_of(config, shape, DType::kF32));
  LatentStatistics statistics;
  for (uint64_t i = 0; i < 3; ++i)
    statistics.add(raw.run({{"video", random_video(shape, i)}}, "z"));
  config.mean = statistics.mean();
  config.std = statistics.std();
  StandIn normalised(DType::kF32, encode_of(config, shape, DType::kF32));
  LatentStatistics after;
  for (uint64_t i = 0; i < 3; ++i)
    after.add(normalised.run({{"video", random_video(shape, i)}}, "z"));
  for (int64_t c = 0; c < config.z_dim; ++c) {
    EXPECT_NEAR(after.mean()[static_cast<size_t>(c)], 0, 1e-4);
    EXPECT_NEAR(after.std()[static_cast<size_t>(c)], 1, 1e-4);
  }
}

TEST(Vae, BadConfigurationsAreRefused) {
  const auto refused = [](const std::function<void(VaeConfig&)>& change) {
    VaeConfig config = vae_wan22();
    change(config);
    EXPECT_THROW(check(config), ConfigError);
  };
  EXPECT_NO_THROW(check(vae_wan22()));
  EXPECT_NO_THROW(check(vae_wan21()));
  EXPECT_NO_THROW(check(stand_in_vae()));
  refused([](VaeConfig& c) { c.dim = 0; });
  refused([](VaeConfig& c) { c.dim_mult = {}; });
  refused([](VaeConfig& c) { c.dim_mult = {1, 2, 4}; });
  refused([](VaeConfig& c) { c.dim_mult[1] = -2; });
  refused([](VaeConfig& c) { c.dim_mult[1] = 3; });  // averages do not divide
  refused([](VaeConfig& c) { c.mean.pop_back(); });
  refused([](VaeConfig& c) { c.std[3] = 0; });
  refused([](VaeConfig& c) { c.std[3] = NAN; });
  refused([](VaeConfig& c) { c.kind = VaeKind::kWan21; });  // dec_dim differs
  EXPECT_NO_THROW(check_clip(vae_wan22(), 33, 160, 320));
  EXPECT_NO_THROW(check_clip(vae_wan22(), 1, 16, 16));
  EXPECT_THROW(check_clip(vae_wan22(), 32, 160, 320), ConfigError);
  EXPECT_THROW(check_clip(vae_wan22(), 0, 160, 320), ConfigError);
  EXPECT_THROW(check_clip(vae_wan22(), 33, 168, 320), ConfigError);
  EXPECT_THROW(check_clip(vae_wan22(), 33, 0, 320), ConfigError);
}

TEST(Umt5, PaddingDoesNotChangeThePrompt) {
  const Umt5Config config = stand_in_umt5(50);
  const auto build = [&](int64_t length) {
    return Build([=](Graph& graph, ParamUser& params) {
      const ValueId ids = graph.add_input("ids", {DType::kI32, Shape{1, length}});
      const ValueId mask = graph.add_input("mask", {DType::kF32, Shape{1, length}});
      graph.add_output("prompt", build_umt5(params, config, ids, mask).prompt);
    });
  };
  const auto prompt = [&](int64_t length, int64_t tokens, int32_t pad) {
    HostTensor ids(DType::kI32, Shape{1, length}), mask(DType::kF32, Shape{1, length});
    for (int64_t i = 0; i < length; ++i) {
      ids.as<int32_t>()[static_cast<size_t>(i)] =
          i < tokens ? static_cast<int32_t>(7 * i + 3) % 50 : pad;
      mask.as<float>()[static_cast<size_t>(i)] = i < tokens ? 1.0f : 0.0f;
    }
    StandIn encoder(DType::kF32, build(length));
    return encoder.run({{"ids", ids}, {"mask", mask}}, "prompt");
  };
  const HostTensor exact = prompt(6, 6, 0), padded = prompt(20, 6, 0), other = prompt(20, 6, 9);
  const int64_t used = exact.num_elements();
  HostTensor head(DType::kF32, exact.shape());
  std::copy_n(padded.as<float>().begin(), used, head.as<float>().begin());
  EXPECT_LE(relative(head, exact), 1e-6);
  // What stands in padding does not matter. Zeros there keep the sign of what they were made from.
  EXPECT_EQ(std::memcmp(padded.data(), other.data(), static_cast<size_t>(exact.size_bytes())), 0);
  for (const HostTensor& result : {padded, other}) {
    for (const float x : result.as<float>().subspan(static_cast<size_t>(used))) ASSERT_EQ(x, 0.0f);
  }
}

TEST(Umt5, RelativeBuckets) {
  const auto bucket = [](int64_t distance) { return relative_bucket(distance, 32, 128); };
  EXPECT_EQ(bucket(0), 0);
  EXPECT_EQ(bucket(-7), 7);
  EXPECT_EQ(bucket(7), 16 + 7);
  // 8 + floor(8 ln(r / 8) / ln 16): powers of two are exact, everything from 128 on is the last.
  for (const auto& [distance, want] :
       {std::pair{8, 8}, {15, 9}, {16, 10}, {32, 12}, {64, 14}, {127, 15}, {128, 15}, {511, 15}}) {
    EXPECT_EQ(bucket(-distance), want) << distance;
    EXPECT_EQ(bucket(distance), 16 + want) << distance;
  }
  for (int64_t r = 8; r < 600; ++r) {
    const double exact = 8 * std::log(static_cast<double>(r) / 8) / std::log(16.0);
    const double nearest = std::round(exact);
    if (std::abs(exact - nearest) < 1e-9) continue;  // decided by the loop above
    EXPECT_EQ(bucket(-r), std::min<int64_t>(15, 8 + static_cast<int64_t>(exact))) << r;
  }
}

TEST(Configurations, BadOnesAreRefused) {
  Umt5Config text = umt5_xxl();
  EXPECT_NO_THROW(check(text));
  text.heads = 63;
  EXPECT_THROW(check(text), ConfigError);
  text = umt5_xxl();
  text.num_buckets = 6;
  EXPECT_THROW(check(text), ConfigError);
  ClipConfig clip = clip_vit_h();
  EXPECT_NO_THROW(check(clip));
  clip.patch_size = 15;
  EXPECT_THROW(check(clip), ConfigError);
  clip = clip_vit_h();
  clip.layers = 0;
  EXPECT_THROW(check(clip), ConfigError);
}

}  // namespace
}  // namespace wam
