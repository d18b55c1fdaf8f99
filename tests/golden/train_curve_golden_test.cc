// Forty optimizer steps against the reference: losses, gradient norms, learning rates, final
// weights.
#include <cstring>

#include "tests/golden/dit_setup.h"
#include "wam/train/schedule.h"

namespace wam {
namespace {

using golden::File;

// Rows of `pool` chosen by `index`, as one batch.
HostTensor gather(const HostTensor& pool, std::span<const int32_t> index) {
  const int64_t row = pool.num_elements() / pool.shape()[0];
  std::vector<int64_t> dims(pool.shape().dims().begin(), pool.shape().dims().end());
  dims[0] = static_cast<int64_t>(index.size());
  HostTensor out(DType::kF32, Shape(dims));
  for (size_t i = 0; i < index.size(); ++i) {
    std::copy_n(pool.as<float>().begin() + index[i] * row, row,
                out.as<float>().begin() + static_cast<int64_t>(i) * row);
  }
  return out;
}

// Step `step` of a [steps, ...] tensor.
HostTensor at_step(const HostTensor& all, int64_t step) {
  std::vector<int64_t> dims(all.shape().dims().begin() + 1, all.shape().dims().end());
  HostTensor out(all.dtype(), Shape(dims));
  std::memcpy(out.data(), static_cast<const std::byte*>(all.data()) + step * out.size_bytes(),
              static_cast<size_t>(out.size_bytes()));
  return out;
}

class Curve {
 public:
  explicit Curve(const File& file) : file_(file) {
    const Shape noise = file.shape("in.noise");  // [steps, B, C, F, h, w]
    steps_ = noise[0];
    options_.model = golden::dit_config(file.json("config"), noise[4], noise[5], noise[3]);
    options_.shape.batch = noise[1];
    options_.shape.text_tokens = options_.model.text_len;
    ids_ = file.load("in.timestep_id");
    action_ids_ = file.load("in.timestep_action_id");
    const nlohmann::json o = file.json("optimizer");
    options_.adamw = {o.at("betas")[0], o.at("betas")[1], o.at("eps")};
    options_.clip_grad = o.at("clip_grad");
    weight_decay_ = o.at("weight_decay");
    schedule_ = {.lr = o.at("lr"),
                 .min_lr = o.at("min_lr"),
                 .warmup_steps = o.at("warmup_steps"),
                 .total_steps = o.at("total_steps")};
    options_.shape.timesteps = tightest_layout();
    options_.dtype = golden::place().dtype;
    programs_ = train::build_step(options_, device_->target());
    memory_ = device_->allocate(combine(programs_.all()));
    states_ = std::make_unique<train::StateAccess>(*programs_.params, memory_, options_.dtype);
    golden::load_params(*programs_.params, file, "init.",
                        states_->writer(train::StateKind::kWeight));
    step_ = device_->load(programs_.first, memory_, {});
    optimizer_ = device_->load(programs_.optimizer, memory_, {});
  }

  int64_t steps() const { return steps_; }
  int64_t layers() const { return options_.model.layers; }
  void run_step(int64_t step) {
    write_inputs(step);
    step_->run();
    lr_ = train::learning_rate(schedule_, step);
    optimizer_->write("schedule",
                      train::adamw_schedule(lr_, weight_decay_, options_.adamw, step + 1));
    optimizer_->run();
  }
  float output(const std::string& name) { return step_->read(name).as<float>()[0]; }
  double lr() const { return lr_; }
  double grad_norm() { return std::sqrt(optimizer_->read("grad_norm_squared").as<float>()[0]); }

  // |final - golden final| and |golden final - initial| over all weights.
  std::pair<double, double> distances() {
    double off = 0, travelled = 0;
    for (const Param& param : programs_.params->params()) {
      for (const ParamPart& part : param.parts) {
        const HostTensor want = file_.f32("final." + part.name);
        off += std::pow(
            golden::difference_norm(states_->read(train::StateKind::kWeight, param, part), want),
            2);
        travelled += std::pow(golden::difference_norm(file_.f32("init." + part.name), want), 2);
      }
    }
    return {std::sqrt(off), std::sqrt(travelled)};
  }

 private:
  TimestepLayout tightest_layout() const {
    TimestepLayout layout = TimestepLayout::kPerBlock;
    for (int64_t step = 0; step < steps_; ++step) {
      layout = std::max(layout, golden::layout_for(options_.model, at_step(ids_, step),
                                                   at_step(action_ids_, step)));
    }
    return layout;
  }

  void write_inputs(int64_t step) {
    const HostTensor chosen = at_step(file_.load("in.sample_index"), step);
    const auto pool = [&](const std::string& name) {
      return gather(file_.f32("in.pool." + name), chosen.as<int32_t>());
    };
    const golden::TimestepInputs t = golden::timestep_inputs(
        options_.model, options_.shape.timesteps, at_step(ids_, step), at_step(action_ids_, step));
    golden::write(*step_, "timesteps", t.timesteps);
    golden::write(*step_, "sigmas", t.sigmas);
    golden::write(*step_, "weights", t.weights);
    golden::write(*step_, "frame_weights", t.frame_weights);
    golden::write(*step_, "action_timesteps", t.action_timesteps);
    golden::write(*step_, "latents", golden::channels_last(pool("lat")));
    golden::write(*step_, "noise", golden::channels_last(at_step(file_.f32("in.noise"), step)));
    if (options_.model.has_y()) golden::write(*step_, "y", golden::channels_last(pool("y")));
    golden::write(*step_, "action", pool("act"));
    golden::write(*step_, "action_noise", at_step(file_.f32("in.action_noise"), step));
    golden::write(*step_, "action_mask", pool("mask"));
    golden::write(*step_, "state", pool("state"));
    golden::write(*step_, "context", pool("ctx"));
    golden::write(*step_, "clip", pool("clip"));
  }

  const File& file_;
  std::unique_ptr<Device> device_ = golden::open_device();
  train::StepOptions options_;
  train::LearningRate schedule_;
  double weight_decay_ = 0, lr_ = 0;
  int64_t steps_ = 0;
  HostTensor ids_, action_ids_;
  train::StepPrograms programs_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<train::StateAccess> states_;
  std::unique_ptr<Executor> step_, optimizer_;
};

TEST(TrainCurveGolden, FollowsTheReference) {
  const auto paths = golden::files("train_curve_");
  if (paths.empty()) GTEST_SKIP() << "no train_curve_*.safetensors in WAM_GOLDEN_DIR";
  for (const auto& path : paths) {
    const File file(path);
    Curve curve(file);
    const HostTensor loss = file.f32("out.loss"), dynamics = file.f32("out.dynamics_loss"),
                     action = file.f32("out.action_loss"), norms = file.f32("out.grad_norm"),
                     lrs = file.load("out.lr");
    double worst = 0;
    const double bound = golden::bound(1e-5, 60.0 * static_cast<double>(curve.layers()));
    const auto check = [&](double got, double want, const std::string& what, int64_t step) {
      EXPECT_NEAR(got, want, bound * std::abs(want)) << what << " of step " << step;
      worst = std::max(worst, std::abs(got - want) / std::abs(want));
    };
    for (int64_t step = 0; step < curve.steps(); ++step) {
      const auto i = static_cast<size_t>(step);
      curve.run_step(step);
      check(curve.output("loss"), loss.as<float>()[i], "loss", step);
      check(curve.output("dynamics_loss"), dynamics.as<float>()[i], "dynamics_loss", step);
      check(curve.output("action_loss"), action.as<float>()[i], "action_loss", step);
      check(curve.grad_norm(), norms.as<float>()[i], "gradient norm", step);
      EXPECT_NEAR(curve.lr(), lrs.as<double>()[i], 4e-16 * lrs.as<double>()[i] + 1e-300) << step;
    }
    const auto [off, travelled] = curve.distances();
    EXPECT_LE(off, golden::bound(1e-3, 60.0 * static_cast<double>(curve.layers())) * travelled);
    std::printf(
        "%s: losses and norms within %.1e; final weights off by %.1e of the way travelled\n",
        path.filename().c_str(), worst, off / travelled);
  }
}

}  // namespace
}  // namespace wam
