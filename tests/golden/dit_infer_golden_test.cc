// Closed-loop inference: frame 0 written, block 1 predicted, its observation written, block 2
// predicted, all against one key/value cache.
#include "tests/golden/dit_setup.h"

namespace wam {
namespace {

using golden::File;
using golden::relative;

// One call of the model with a given cache length.
struct Call {
  DitInferShape shape;
  std::string frames;  // name of the latents in the file
  float timestep = 0;
};

class Session {
 public:
  explicit Session(const File& file) : file_(file) {
    const Shape first = file.shape("in.first_frame");
    config_ = golden::dit_config(file.json("config"), first[3], first[4], 5);
    tokens_ = config_.tokens_per_frame();
    const int64_t capacity = cache_capacity(config_, 5);
    for (Call& call : calls_) {
      call.shape.cache_capacity = capacity;
      call.shape.text_tokens = config_.text_len;
    }
    calls_[1].shape.cache_tokens = calls_[2].shape.cache_tokens = tokens_;
    calls_[3].shape.cache_tokens = 3 * tokens_;
    for (const Call& call : calls_) programs_.push_back(lower_call(call));
    std::vector<const Program*> all;
    for (const Program& program : programs_) all.push_back(&program);
    memory_ = device_->allocate(combine(all));
    golden::load_params(
        params_, file, "param.",
        [this](const Param& param, const ParamPart& part, const HostTensor& value) {
          const HostTensor stored = value.to(golden::place().dtype);
          const int64_t offset =
              (param.offset_elements + part.offset_elements) * size_bytes(stored.dtype());
          memory_->write_region(param.region, offset, stored.data(), stored.size_bytes());
        });
  }

  std::unique_ptr<Executor> run(int index) {
    const Call& call = calls_[static_cast<size_t>(index)];
    auto executor = device_->load(programs_[static_cast<size_t>(index)], memory_, {.poison = true});
    golden::write(*executor, "latents", golden::channels_last(file_.load(call.frames)));
    HostTensor times(DType::kF32, Shape{1, call.shape.frames + 1});
    std::ranges::fill(times.as<float>(), call.timestep);
    golden::write(*executor, "timesteps", times);
    golden::write(*executor, "context", file_.f32("in.context"));
    golden::write(*executor, "clip", file_.f32("in.clip_feature"));
    if (config_.has_y()) write_y(*executor, call);
    if (call.shape.with_actions) {
      HostTensor action_times(DType::kF32, Shape{1, config_.actions_per_block});
      std::ranges::fill(action_times.as<float>(), call.timestep);
      golden::write(*executor, "action_timesteps", action_times);
      golden::write(*executor, "action", file_.f32("in.action"));
      golden::write(*executor, "state", file_.f32("in.state"));
    }
    executor->run();
    return executor;
  }

  // Keys then values of a layer as the golden file has them: [2, B, rows, H, d].
  HostTensor cache(Executor& executor, int layer, int64_t rows) const {
    const HostTensor all = executor.read("cache/" + std::to_string(layer)).to(DType::kF32);
    HostTensor out(DType::kF32, Shape{2, rows * config_.dim});
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t half = 0; half < 2; ++half) {
        std::copy_n(all.as<float>().begin() + (row * 2 + half) * config_.dim, config_.dim,
                    out.as<float>().begin() + (half * rows + row) * config_.dim);
      }
    }
    return out;
  }
  int64_t tokens() const { return tokens_; }
  int64_t layers() const { return config_.layers; }

 private:
  Program lower_call(const Call& call) {
    Graph graph("infer");
    Builder b(graph);
    ParamUser user(b, params_, golden::place().dtype);
    const DitInfer model = build_dit_infer(user, config_, call.shape, "session.cache");
    graph.add_output("video", model.video);
    if (model.action.valid()) graph.add_output("action", model.action);
    return lower(graph, device_->target());
  }

  void write_y(Executor& executor, const Call& call) {
    const HostTensor y = golden::channels_last(file_.load("in.y"));
    const int64_t frame = y.num_elements() / y.shape()[1];
    HostTensor part(DType::kF32,
                    Shape{1, call.shape.frames, y.shape()[2], y.shape()[3], y.shape()[4]});
    std::copy_n(y.as<float>().begin() + call.shape.first_frame * frame, call.shape.frames * frame,
                part.as<float>().begin());
    golden::write(executor, "y", part);
  }

  const File& file_;
  std::unique_ptr<Device> device_ = golden::open_device();
  DitConfig config_;
  int64_t tokens_ = 0;
  ParamSet params_{"dit", false};
  std::vector<Call> calls_ = {
      {{.frames = 1, .first_frame = 0}, "in.first_frame", 0},
      {{.frames = 2, .first_frame = 1, .with_actions = true, .block = 0}, "in.noisy", 700},
      {{.frames = 2, .first_frame = 1}, "in.observed_block", 0},
      {{.frames = 2, .first_frame = 3, .with_actions = true, .block = 1}, "in.noisy", 700}};
  std::vector<Program> programs_;
  std::shared_ptr<Memory> memory_;
};

HostTensor channels_first(const HostTensor& x) { return golden::permuted(x, {0, 4, 1, 2, 3}); }

TEST(DitInferGolden, TwoBlocksWithACache) {
  const auto paths = golden::files("dit_infer_");
  if (paths.empty()) GTEST_SKIP() << "no dit_infer_*.safetensors in WAM_GOLDEN_DIR";
  for (const auto& path : paths) {
    std::printf("%s\n", path.filename().c_str());
    const File file(path);
    Session session(file);
    const double bound = golden::bound(1e-5, 20.0 * static_cast<double>(session.layers()));
    session.run(0);
    for (const int block : {1, 2}) {
      if (block == 2) {
        const auto observed = session.run(2);
        for (int layer = 0; layer < session.layers(); ++layer) {
          const std::string name = "out.kv_cache_layer" + std::to_string(layer);
          if (!file.has(name)) continue;
          EXPECT_LE(
              relative(session.cache(*observed, layer, 3 * session.tokens()), file.f32(name), name),
              bound);
        }
      }
      const auto executor = session.run(2 * block - 1);
      const std::string suffix = "_pred_block" + std::to_string(block);
      EXPECT_LE(relative(channels_first(executor->read("video")), file.f32("out.video" + suffix),
                         "video" + suffix),
                bound);
      EXPECT_LE(
          relative(executor->read("action"), file.f32("out.action" + suffix), "action" + suffix),
          bound);
    }
  }
}

}  // namespace
}  // namespace wam
