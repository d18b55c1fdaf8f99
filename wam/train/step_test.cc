// The step in bf16 with a split master, on the CPU: states without loss, resume without a change,
// gradients in either type, and a loss that stays beside float32's.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "wam/base/error.h"
#include "wam/base/philox.h"
#include "wam/exec/cuda.h"
#include "wam/plan/arena.h"
#include "wam/tensor/split_float.h"
#include "wam/train/fit.h"
#include "wam/train/schedule.h"
#include "wam/train/state_access.h"
#include "wam/train/step.h"

namespace wam::train {
namespace {

StepOptions small_step(DType dtype, DType gradients = DType::kF32) {
  StepOptions o;
  DitConfig& c = o.model;
  c.dim = 48;
  c.layers = 2;
  c.heads = 2;
  c.ffn_dim = 96;
  c.freq_dim = 32;
  c.text_dim = 24;
  c.text_len = 16;
  c.clip_dim = 20;
  c.clip_tokens = 5;
  c.latent_channels = 6;
  c.action_dim = 4;
  c.state_dim = 5;
  c.coder_dim = 24;
  c.num_blocks = 2;
  c.actions_per_block = 3;
  c.latent_height = 4;
  c.latent_width = 4;
  o.shape = {.batch = 2, .text_tokens = 7};
  o.accumulate = 2;
  o.dtype = dtype;
  o.gradient_dtype = gradients;
  return o;
}

// A step's programs on the CPU, fed with the same random numbers whatever their type.
class Trained {
 public:
  explicit Trained(const StepOptions& options)
      : options_(options),
        programs_(build_step(options, device_->target())),
        memory_(device_->allocate(combine(programs_.all()))),
        states_(*programs_.params, memory_, options.dtype) {
    first_ = device_->load(programs_.first, memory_, {.poison = true});
    add_ = device_->load(*programs_.add, memory_, {.poison = true});
    optimizer_ = device_->load(programs_.optimizer, memory_, {});
    initialise_weights(*programs_.params, 5, states_.writer(StateKind::kWeight));
  }

  // One optimizer step; the loss.
  double step(int64_t t) {
    double loss = 0;
    for (int64_t micro = 0; micro < 2; ++micro) {
      Executor& e = micro == 0 ? *first_ : *add_;
      feed(e, t, micro);
      e.run();
      loss += 0.5 * e.read("loss").as<float>()[0];
    }
    optimizer_->write("schedule", adamw_schedule(kRate, 0.01, options_.adamw, t + 1));
    optimizer_->run();
    return loss;
  }

  std::vector<double> steps(int64_t from, int64_t to) {
    std::vector<double> losses;
    for (int64_t t = from; t < to; ++t) losses.push_back(step(t));
    return losses;
  }

  using States = std::map<std::string, HostTensor>;
  States states() const {
    States all;
    for_each([&](StateKind kind, const std::string& name, const Param& param,
                 const ParamPart& part) { all[name] = states_.read(kind, param, part); });
    return all;
  }
  void restore(const States& all) {
    for_each([&](StateKind kind, const std::string& name, const Param& param,
                 const ParamPart& part) { states_.write(kind, param, part, all.at(name)); });
  }
  StateAccess& access() { return states_; }
  const StepPrograms& programs() const { return programs_; }

  static constexpr double kRate = 1e-3;

 private:
  template <typename F>
  void for_each(const F& f) const {
    for (const StateKind kind :
         {StateKind::kWeight, StateKind::kFirstMoment, StateKind::kSecondMoment}) {
      for (const Param& param : programs_.params->params()) {
        for (const ParamPart& part : param.parts) {
          f(kind, std::to_string(static_cast<int>(kind)) + part.name, param, part);
        }
      }
    }
  }

  void feed(Executor& executor, int64_t t, int64_t micro) {
    uint64_t index = static_cast<uint64_t>(100 * micro);
    for (const NamedOperand& input : executor.program().inputs) {
      const TensorType& type = input.operand.type;
      HostTensor value(DType::kF32, type.shape);
      fill_normal(value.as<float>(), 7, RandomUse::kTest, static_cast<uint64_t>(t), index++);
      const bool positive = input.name.find("weights") != std::string::npos ||
                            input.name.find("mask") != std::string::npos ||
                            input.name.find("sigmas") != std::string::npos;
      for (float& x : value.as<float>()) {
        if (positive) x = std::min(1.0f, std::fabs(x));
      }
      // Rounded to bf16 for every type, so that all runs see the same numbers.
      executor.write(input.name, value.to(DType::kBF16).to(type.dtype));
    }
  }

  StepOptions options_;
  std::unique_ptr<Device> device_ = make_cpu_device();
  StepPrograms programs_;
  std::shared_ptr<Memory> memory_;
  StateAccess states_;
  std::unique_ptr<Executor> first_, add_, optimizer_;
};

void expect_same_bits(const Trained::States& a, const Trained::States& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    const auto x = value.as<float>(), y = b.at(name).as<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(x[i]), std::bit_cast<uint32_t>(y[i])) << name << " " << i;
    }
  }
}

TEST(SplitFloat, GivesEveryFloatBack) {
  Random random(1, RandomUse::kTest, 0, 0);
  for (int i = 0; i < 2'000'000; ++i) {
    const uint32_t bits = i < 70000 ? static_cast<uint32_t>(i) * 65521u : random.next_u32();
    const SplitFloat halves = split_float(std::bit_cast<float>(bits));
    ASSERT_EQ(std::bit_cast<uint32_t>(join_float(halves.high, halves.low)), bits);
  }
}

TEST(SplitFloat, UpperHalfIsTheNearest) {
  Random random(2, RandomUse::kTest, 0, 0);
  for (int i = 0; i < 100000; ++i) {
    const auto x = static_cast<float>(random.normal());
    const SplitFloat halves = split_float(x);
    const float high = bf16_to_float(halves.high);
    // Half a unit in the last of bf16's 8 bits.
    EXPECT_LE(std::fabs(x - high), std::ldexp(std::fabs(x), -8));
    if (halves.low != -32768) {
      EXPECT_EQ(halves.high, float_to_bf16(x));
    }
  }
}

TEST(StateAccess, KeepsEveryBitOfASplitMaster) {
  Trained run(small_step(DType::kBF16));
  Random random(3, RandomUse::kTest, 0, 0);
  const Param& param = run.programs().params->params().back();
  const ParamPart& part = param.parts.back();
  HostTensor value(DType::kF32, part.shape);
  for (float& x : value.as<float>()) x = std::bit_cast<float>(random.next_u32());
  run.access().write(StateKind::kWeight, param, part, value);
  const HostTensor back = run.access().read(StateKind::kWeight, param, part);
  for (size_t i = 0; i < value.as<float>().size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(value.as<float>()[i]),
              std::bit_cast<uint32_t>(back.as<float>()[i]));
  }
}

class Bf16Step : public testing::TestWithParam<DType> {};

TEST_P(Bf16Step, ResumesWithTheSameBits) {
  const StepOptions options = small_step(DType::kBF16, GetParam());
  Trained through(options), half(options), rest(options);
  const std::vector<double> losses = through.steps(0, 6);
  half.steps(0, 3);
  rest.restore(half.states());
  const std::vector<double> again = rest.steps(3, 6);
  EXPECT_EQ(std::vector<double>(losses.begin() + 3, losses.end()), again);
  expect_same_bits(through.states(), rest.states());
}

// Each value that is stored is rounded by at most u = 2^-9 of itself, by 2^-9 / sqrt(3) in the mean
// square. Errors of R roundings on the way to a prediction add up like a random walk:
// sqrt(R / 3) u, and the squared error, and so the loss, moves by at most twice that share where
// the prediction is no larger than its error. A block rounds 14 values on the residual path, the
// embeddings and the head about 12. The weights' own rounding counts as one more for each product.
TEST_P(Bf16Step, LossStaysBesideF32) {
  const StepOptions options = small_step(DType::kBF16, GetParam());
  const double roundings = 2.0 * static_cast<double>(14 * options.model.layers + 12);
  const double bound = 2 * std::sqrt(roundings / 3) * std::ldexp(1.0, -9);
  Trained narrow(options), wide(small_step(DType::kF32));
  const std::vector<double> a = narrow.steps(0, 20), b = wide.steps(0, 20);
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]) / b[i]);
  EXPECT_LT(worst, bound);
  EXPECT_GT(worst, 0);  // bf16 indeed
}

INSTANTIATE_TEST_SUITE_P(Gradients, Bf16Step, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(name(info.param)); });

// The master moves by less than a bf16 weight can: without the lower half nothing would be learnt.
TEST(SplitMaster, MovesWhereBf16CouldNot) {
  Trained run(small_step(DType::kBF16));
  const Trained::States before = run.states();
  run.step(0);
  const Trained::States after = run.states();
  const std::string weight = "0blocks.1.ffn.0.weight";
  ASSERT_TRUE(before.contains(weight));
  int64_t moved = 0, visible = 0;
  for (size_t i = 0; i < before.at(weight).as<float>().size(); ++i) {
    const float x = before.at(weight).as<float>()[i], y = after.at(weight).as<float>()[i];
    moved += x != y;
    visible += split_float(x).high != split_float(y).high;
  }
  EXPECT_GT(moved, 0);
  EXPECT_LT(visible, moved);
}

TEST(GradientType, HalvesTheGradientsMemory) {
  const StepPrograms wide = build_step(small_step(DType::kBF16), cpu_target());
  const StepPrograms narrow = build_step(small_step(DType::kBF16, DType::kBF16), cpu_target());
  const auto gradients = [](const StepPrograms& p) {
    return combine(p.all()).by_category.at("gradients");
  };
  const auto buffers = static_cast<int64_t>(wide.params->buffers().size());
  EXPECT_NEAR(gradients(wide), 2 * gradients(narrow), 2 * kArenaAlignment * buffers);
}

// Full size, without a device.
StepOptions full_step(int64_t batch) {
  StepOptions o;
  o.model = dit_5b();
  o.model.actions_per_block = 16;
  o.shape = {.batch = batch, .text_tokens = 91};
  o.accumulate = 32 / batch;
  o.dtype = DType::kBF16;
  return o;
}

TEST(Fit, StepOfThe5BFitsAnH200) {
  constexpr int64_t kCard = 149'000'000'000;
  const StepPrograms step = build_step(full_step(8), cuda_target());
  EXPECT_LT(combine(step.all()).total_bytes(), kCard);
  EXPECT_EQ(step.params->num_elements(), 5'606'692'832);
}

// Each gradient is rounded as soon as it is there, so that no wide ones pile up.
TEST(GradientType, SavesWhatItPromises) {
  StepOptions options = full_step(1);
  const auto total = [&] {
    return combine(build_step(options, cuda_target()).all()).total_bytes();
  };
  const int64_t wide = total();
  options.gradient_dtype = DType::kBF16;
  EXPECT_LT(total(), wide - 2 * 5'606'692'832 + (int64_t{256} << 20));
}

TEST(Fit, RecomputesNoMoreThanItMust) {
  constexpr int64_t kCard = 149'000'000'000;
  StepOptions options = full_step(16);
  options.recompute.policy = RecomputePolicy::kBudget;
  const StepPrograms step = build_fitting_step(options, cuda_target(), {kCard, "card"}, {});
  const int64_t total = combine(step.all()).total_bytes();
  EXPECT_LE(total, kCard);
  EXPECT_GT(total, kCard - kCard / 50);  // what is left over is under 2 %
  EXPECT_GT(step.recompute.recomputed_flops, 0);
}

// What a budget allows is about what the arena holds, and more of it is never worse: no value is
// dropped that only a chain through all blocks could bring back.
TEST(Fit, ArenaFollowsTheBudget) {
  StepOptions options = full_step(16);
  options.recompute.policy = RecomputePolicy::kBudget;
  double again = 1e300;
  for (const int64_t budget : {10, 30, 50, 70}) {
    options.recompute.budget_bytes = budget * 1'000'000'000;
    const StepPrograms step = build_step(options, cuda_target());
    EXPECT_LE(step.recompute.kept_bytes_after, options.recompute.budget_bytes);
    // Beside what is kept: one block's values, and its gradients.
    EXPECT_LT(step.first.arena.peak, options.recompute.budget_bytes + 4'000'000'000) << budget;
    EXPECT_LT(step.recompute.recomputed_flops, again) << budget;
    again = step.recompute.recomputed_flops;
  }
}

TEST(Fit, SaysWhatWouldFit) {
  constexpr int64_t kCard = 149'000'000'000;
  const StepOptions options = full_step(32);
  const StepPrograms step = build_step(options, cuda_target());
  try {
    check_fits(options, step, cuda_target(), {kCard, "card"}, {});
    FAIL() << "fits";
  } catch (const PlanError& error) {
    EXPECT_NE(error.info().remedy.find("micro_batch_size: 32 with recompute: full"),
              std::string::npos)
        << error.what();
    EXPECT_NE(error.info().remedy.find("micro_batch_size: 8"), std::string::npos) << error.what();
  }
}

TEST(Fit, SaysWhenNothingFits) {
  const StepOptions options = full_step(8);
  const StepPrograms step = build_step(options, cuda_target());
  try {
    check_fits(options, step, cuda_target(), {int64_t{80} << 30, "card"}, {});
    FAIL() << "fits";
  } catch (const PlanError& error) {
    // 80 GiB hold the states with narrow gradients and the residual stream of one sample.
    EXPECT_NE(error.info().remedy.find("gradient_dtype: bf16"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace wam::train
