// Forward, losses and every gradient of both kinds of DiT, on every way the step can be built.
#include "tests/golden/dit_setup.h"

namespace wam {
namespace {

using golden::File;
using golden::relative;

struct Run {
  std::string name;
  bool fuse = true;
  RecomputePolicy recompute = RecomputePolicy::kNone;
};

class DitRun {
 public:
  DitRun(const File& file, const Run& run) : file_(file) {
    const Shape latents = file.shape("in.latents");
    options_.model = golden::dit_config(file.json("config"), latents[3], latents[4], latents[2]);
    options_.shape.batch = latents[0];
    options_.shape.text_tokens = options_.model.text_len;
    const HostTensor video = file.load("in.timestep_id"),
                     action = file.load("in.timestep_action_id");
    options_.shape.timesteps = golden::layout_for(options_.model, video, action);
    options_.fuse = run.fuse;
    options_.recompute.policy = run.recompute;
    options_.outputs_predictions = true;
    options_.dtype = golden::place().dtype;
    programs_ = train::build_step(options_, device_->target());
    const std::vector<const Program*> all = programs_.all();
    memory_ = device_->allocate(combine(all));
    train::StateAccess states(*programs_.params, memory_, options_.dtype);
    golden::load_params(*programs_.params, file, "param.",
                        states.writer(train::StateKind::kWeight));
    step_ = device_->load(programs_.first, memory_, {.poison = true});
    forward_ = device_->load(programs_.validation, memory_, {.poison = true});
    write_inputs(video, action);
  }

  Executor& step() { return *step_; }
  Executor& forward() { return *forward_; }
  const DitConfig& config() const { return options_.model; }
  double layers() const { return static_cast<double>(options_.model.layers); }

  void check_gradients() {
    double total = 0;
    for_each_gradient([&](const HostTensor&, const HostTensor& want, const std::string&) {
      total += std::pow(golden::norm(want), 2);
    });
    total = std::sqrt(total);
    double worst = 0;
    std::string worst_name;
    for_each_gradient([&](const HostTensor& got, const HostTensor& want, const std::string& name) {
      const double error = golden::difference_norm(got, want);
      // Forward and backward of a layer store some thirty values each on the way to a weight.
      const double relative_bound = golden::bound(1e-4, 60.0 * layers());
      const double bound =
          std::max(relative_bound * golden::norm(want), 1e-3 * relative_bound * total);
      EXPECT_LE(error, bound) << name;
      if (error / bound > worst) {
        worst = error / bound;
        worst_name = name;
      }
    });
    std::printf("  gradients: worst at %.3f of its bound, %s\n", worst, worst_name.c_str());
  }

 private:
  template <typename F>
  void for_each_gradient(const F& f) {
    for (const Param& param : programs_.params->params()) {
      for (const ParamPart& part : param.parts) {
        if (!file_.has("grad." + part.name)) continue;
        f(golden::read_part(param, part, gradient_region(param.region), *memory_),
          file_.f32("grad." + part.name), part.name);
      }
    }
  }

  void write_inputs(const HostTensor& video, const HostTensor& action) {
    const golden::TimestepInputs t =
        golden::timestep_inputs(options_.model, options_.shape.timesteps, video, action);
    golden::write(*step_, "timesteps", t.timesteps);
    golden::write(*step_, "sigmas", t.sigmas);
    golden::write(*step_, "weights", t.weights);
    golden::write(*step_, "frame_weights", t.frame_weights);
    golden::write(*step_, "action_timesteps", t.action_timesteps);
    golden::write(*step_, "latents", golden::channels_last(file_.load("in.latents")));
    golden::write(*step_, "noise", golden::channels_last(file_.load("in.noise")));
    if (options_.model.has_y())
      golden::write(*step_, "y", golden::channels_last(file_.load("in.y")));
    golden::write(*step_, "action", file_.f32("in.action"));
    golden::write(*step_, "action_noise", file_.f32("in.action_noise"));
    golden::write(*step_, "state", file_.f32("in.state"));
    golden::write(*step_, "context", file_.f32("in.context"));
    golden::write(*step_, "clip", file_.f32("in.clip_feature"));
    HostTensor mask = file_.f32("in.action_mask").clone();
    const HostTensor real = file_.f32("in.has_real_action");
    const int64_t per_sample = mask.num_elements() / mask.shape()[0];
    for (int64_t i = 0; i < mask.num_elements(); ++i) {
      mask.as<float>()[static_cast<size_t>(i)] *=
          real.as<float>()[static_cast<size_t>(i / per_sample)];
    }
    golden::write(*step_, "action_mask", mask);
  }

  const File& file_;
  std::unique_ptr<Device> device_ = golden::open_device();
  train::StepOptions options_;
  train::StepPrograms programs_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Executor> step_, forward_;
};

// [B, N, 4 C] patches in channel-last order -> [B, C, F, h, w].
HostTensor unpatched(const HostTensor& x, const DitConfig& c) {
  const int64_t h = c.latent_height / 2, w = c.latent_width / 2;
  const HostTensor grid =
      x.reshaped(Shape{x.shape()[0], c.num_frames(), h, w, 2, 2, c.latent_channels});
  return golden::permuted(grid, {0, 6, 1, 2, 4, 3, 5})
      .reshaped(Shape{x.shape()[0], c.latent_channels, c.num_frames(), 2 * h, 2 * w});
}

void check_scalar(Executor& executor, const File& file, const std::string& name, double bound) {
  const float got = executor.read(name).as<float>()[0],
              want = file.f32("out." + name).as<float>()[0];
  EXPECT_NEAR(got, want, bound * std::abs(want)) << name;
}

void check_file(const std::filesystem::path& path, const Run& run) {
  std::printf("%s, %s\n", path.filename().c_str(), run.name.c_str());
  const File file(path);
  DitRun dit(file, run);
  const double bound = golden::bound(1e-5, 20 * dit.layers());
  dit.step().run();
  for (const std::string name : {"loss", "dynamics_loss", "action_loss"}) {
    check_scalar(dit.step(), file, name, bound);
  }
  dit.check_gradients();
  dit.forward().run();
  for (const std::string name : {"loss", "dynamics_loss", "action_loss"}) {
    check_scalar(dit.forward(), file, name, bound);
  }
  EXPECT_LE(relative(unpatched(dit.forward().read("video_pred"), dit.config()),
                     file.f32("out.video_pred"), "video_pred"),
            bound);
  EXPECT_LE(relative(dit.forward().read("action_pred"), file.f32("out.action_pred"), "action_pred"),
            bound);
}

class DitGolden : public testing::TestWithParam<Run> {};

TEST_P(DitGolden, LossesPredictionsAndGradients) {
  int checked = 0;
  for (const auto& path : golden::files("dit_")) {
    if (path.filename().string().starts_with("dit_infer_")) continue;
    check_file(path, GetParam());
    ++checked;
  }
  if (checked == 0) GTEST_SKIP() << "no dit_*.safetensors in WAM_GOLDEN_DIR";
}

INSTANTIATE_TEST_SUITE_P(Ways, DitGolden,
                         testing::Values(Run{"fused"}, Run{"plain", false},
                                         Run{"recomputed", true, RecomputePolicy::kFull}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wam
