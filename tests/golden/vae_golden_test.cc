// Both autoencoders: encode, the first-frame condition, decode.
#include <cstring>

#include "tests/golden/encoder_setup.h"
#include "wam/models/vae.h"

namespace wam {
namespace {

using golden::File;
using golden::relative;

HostTensor channels_last(const HostTensor& x) { return golden::permuted(x, {0, 2, 3, 4, 1}); }
HostTensor channels_first(const HostTensor& x) { return golden::permuted(x, {0, 4, 1, 2, 3}); }

std::vector<double> numbers(const HostTensor& x) {
  const HostTensor wide = x.to(DType::kF64);
  return {wide.as<double>().begin(), wide.as<double>().end()};
}

VaeConfig config_of(const File& file, VaeKind kind) {
  const nlohmann::json j = file.json("config");
  VaeConfig c{.kind = kind, .dim = j.at("dim"), .dec_dim = j.at("dim"), .z_dim = j.at("z_dim")};
  if (kind == VaeKind::kWan22) c.dec_dim = j.value("dec_dim", c.dim);
  c.mean = numbers(file.load("in.mean"));
  c.std = numbers(file.load("in.std"));
  return c;
}

// The last channels of a channels-last tensor.
HostTensor last_channels(const HostTensor& x, int64_t count) {
  const int64_t all = x.shape()[-1], rows = x.shape().num_rows();
  HostTensor out(DType::kF32, Shape{rows, count});
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(out.as<float>().data() + row * count,
                x.as<float>().data() + row * all + all - count,
                static_cast<size_t>(count) * sizeof(float));
  }
  return out.reshaped(Shape{x.shape()[0], x.shape()[1], x.shape()[2], x.shape()[3], count});
}

void check_condition(golden::EncoderRun& run, const VaeConfig& config, const File& file) {
  const HostTensor y = run.read("condition");
  EXPECT_LE(relative(channels_first(last_channels(y, config.z_dim)),
                     file.f32("out.latent_first_frame_then_zeros"), "first frame then zeros"),
            golden::bound());
  const int64_t frame = y.shape()[2] * y.shape()[3], width = y.shape()[4];
  for (int64_t row = 0; row < y.shape().num_rows(); ++row) {
    const float want = row / frame % y.shape()[1] == 0 ? 1.0f : 0.0f;
    for (int64_t c = 0; c < kConditionMaskChannels; ++c) {
      ASSERT_EQ(y.as<float>()[static_cast<size_t>(row * width + c)], want) << row;
    }
  }
}

void check_file(const File& file, VaeKind kind) {
  const VaeConfig config = config_of(file, kind);
  const HostTensor video = channels_last(file.load("in.video"));
  const HostTensor latent = channels_last(file.load("out.latent"));
  golden::EncoderRun run(file, [&](Graph& graph, ParamUser& params) {
    const ValueId x = graph.add_input("video", video.type());
    graph.add_output("latent", vae_encode(params, config, x));
    const Shape s = video.shape();
    const ValueId first = graph.add_input("first", {DType::kF32, Shape{s[0], 1, s[2], s[3], s[4]}});
    graph.add_output("condition", vae_first_frame_condition(params, config, first, s[1]));
    const ValueId z = graph.add_input("z", latent.type());
    graph.add_output("video_again", vae_decode(params, config, z));
  });
  const Shape s = video.shape();
  HostTensor first(DType::kF32, Shape{s[0], 1, s[2], s[3], s[4]});
  const int64_t frame = s[2] * s[3] * s[4];
  for (int64_t i = 0; i < s[0]; ++i) {
    std::copy_n(video.as<float>().begin() + i * s[1] * frame, frame,
                first.as<float>().begin() + i * frame);
  }
  run.write("video", video);
  run.write("first", first);
  run.write("z", latent);
  run.run();
  EXPECT_LE(relative(channels_first(run.read("latent")), file.f32("out.latent"), "latent"), golden::bound());
  check_condition(run, config, file);
  EXPECT_LE(relative(channels_first(run.read("video_again")), file.f32("out.reconstruction"),
                     "reconstruction"),
            golden::bound());
}

void check_files(const std::string& prefix, VaeKind kind) {
  const auto paths = golden::files(prefix);
  if (paths.empty()) GTEST_SKIP() << "no " << prefix << "*.safetensors in WAM_GOLDEN_DIR";
  for (const auto& path : paths) {
    std::printf("%s\n", path.filename().c_str());
    check_file(File(path), kind);
  }
}

TEST(VaeGolden, Wan21) { check_files("vae_wan21", VaeKind::kWan21); }
TEST(VaeGolden, Wan22) { check_files("vae_wan22", VaeKind::kWan22); }

TEST(VaeGolden, PublishedNormalisation) {
  const char* folder = std::getenv("WAM_GOLDEN_DIR");
  const auto path =
      std::filesystem::path(folder == nullptr ? "" : folder) / "vae_normalisation.json";
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) GTEST_SKIP() << "no vae_normalisation.json in WAM_GOLDEN_DIR";
  const nlohmann::json j = nlohmann::json::parse(file);
  std::fclose(file);
  for (const auto& [key, config] :
       {std::pair{"wan21", vae_wan21()}, std::pair{"wan22", vae_wan22()}}) {
    EXPECT_EQ(config.mean, j.at(key).at("mean").get<std::vector<double>>());
    EXPECT_EQ(config.std, j.at(key).at("std").get<std::vector<double>>());
  }
}

}  // namespace
}  // namespace wam
