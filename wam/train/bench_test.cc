// What the benches run, on the CPU and at small sizes. No time is asserted.
#include "wam/train/bench.h"

#include <gtest/gtest.h>

#include "wam/base/error.h"
#include "wam/train/bench_ablate.h"
#include "wam/train/bench_kernels.h"
#include "wam/train/device.h"

namespace wam::train {
namespace {

StepBenchOptions small_bench() {
  StepBenchOptions o{.steps = 1};
  DitConfig& c = o.step.model;
  c.dim = 48;
  c.layers = 1;
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
  o.step.shape = {.batch = 2, .text_tokens = 7};
  o.step.accumulate = 2;
  return o;
}

int64_t begin_of(const Operand& operand) { return operand.at.offset_bytes; }

TEST(BenchKernels, IsolatedStepsOverlapWhereTheOriginalsDo) {
  const StepBenchOptions o = small_bench();
  const StepPrograms programs = build_step(o.step, target_of("cpu"));
  for (const Step& step : programs.optimizer.steps) {
    const Program alone = isolate(programs.optimizer, step, 2, 3);
    ASSERT_EQ(alone.steps.size(), 3u);
    const int64_t shift = alone.regions.front().bytes / 2;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      for (size_t k = 0; k < step.inputs.size(); ++k) {
        EXPECT_EQ(lies_in(step.outputs[i], step.inputs[k]),
                  lies_in(alone.steps[0].outputs[i], alone.steps[0].inputs[k]))
            << step.op;
      }
      const Operand& out = alone.steps[0].outputs[i];
      EXPECT_LE(begin_of(out) + out.type.size_bytes(), shift);
      // The second launch has operands of its own, the third those of the first.
      EXPECT_EQ(begin_of(alone.steps[1].outputs[i]), begin_of(out) + shift);
      EXPECT_EQ(begin_of(alone.steps[2].outputs[i]), begin_of(out));
    }
  }
}

TEST(BenchKernels, TimesEveryStepOfTheProgramsOnce) {
  const StepBenchOptions o = small_bench();
  const StepPrograms programs = build_step(o.step, target_of("cpu"));
  const KernelBench bench = bench_kernels(o);
  int64_t calls = 0;
  for (const KernelTime& kernel : bench.kernels) {
    calls += kernel.calls;
    EXPECT_GT(kernel.seconds, 0) << kernel.op;
  }
  EXPECT_EQ(calls, static_cast<int64_t>(programs.first.steps.size() + programs.add->steps.size() +
                                        programs.optimizer.steps.size()));
  EXPECT_GT(bench.copy_rate, 0);
  EXPECT_NE(describe(bench).find("linear_wgrad"), std::string::npos);
  EXPECT_NE(to_json(bench).find("floor_seconds"), std::string::npos);
}

TEST(BenchKernels, TakesOnlyTheOpsAskedFor) {
  for (const KernelTime& kernel : bench_kernels(small_bench(), "adamw").kernels) {
    EXPECT_NE(kernel.op.find("adamw"), std::string::npos);
  }
}

TEST(BenchAblate, RunsEachThingAgainstTheBest) {
  AblateOptions options{.best = small_bench(), .only = {"micro-batch 1", "no fusion", "modulation for every token"}};
  const std::vector<Ablation> done = bench_ablate(options, [](const Ablation&) {});
  ASSERT_EQ(done.size(), 4u);
  EXPECT_EQ(done[0].name, "best");
  EXPECT_EQ(done[1].bench.micro_batch, 1);
  EXPECT_EQ(done[1].bench.samples, done[0].bench.samples);
  for (const Ablation& a : done) {
    EXPECT_TRUE(a.ran) << a.name;
    EXPECT_EQ(a.against, a.name == "best" ? "" : "best");
  }
  // Fusion changes no bit on a CPU; rows of their own for all tokens get other random timesteps.
  EXPECT_NEAR(done[2].bench.loss, done[0].bench.loss, 1e-4 * std::abs(done[0].bench.loss));
  EXPECT_NE(describe(done).find("no fusion"), std::string::npos);
}

TEST(BenchAblate, RefusesWhatItDoesNotKnow) {
  try {
    bench_ablate({.best = small_bench(), .only = {"no fussion"}}, [](const Ablation&) {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.info().expected.find("no fusion"), std::string::npos);
  }
}

TEST(BenchStep, FeedsWhatIsCachedFromTheHost) {
  StepBenchOptions o = small_bench();
  o.profile = false;
  const double still = bench_step(o).loss;
  o.frozen = FrozenWork::kCached;
  EXPECT_EQ(bench_step(o).loss, still);  // the same numbers, written before each micro-batch
}

}  // namespace
}  // namespace wam::train
