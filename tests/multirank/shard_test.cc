// Every strategy against the single process: gradients tensor by tensor, losses over 20 steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/multirank/ranks.h"

namespace wam::multirank {
namespace {

using train::Strategy;

struct Layout {
  Strategy strategy;
  int world, shard_size;
  bool full_recompute = false;
  bool keep_gathered = false;
  int64_t prefetch = 1;
  bool overlap = true;
};

std::string text(const Layout& l) {
  return std::string(train::name(l.strategy)) + " on " + std::to_string(l.world) +
         " ranks, shard groups of " + std::to_string(l.shard_size) +
         (l.full_recompute ? ", full recompute" : "") + (l.overlap ? "" : ", sums after the step");
}

std::vector<Layout> layouts(int world) {
  std::vector<Layout> all = {{Strategy::kNone, world, 1}, {Strategy::kNone, world, 1, true}};
  for (const Strategy strategy : {Strategy::kNone, Strategy::kOptimizer}) {
    all.push_back({strategy, world, strategy == Strategy::kNone ? 1 : world});
    all.back().overlap = false;
  }
  for (const Strategy strategy : {Strategy::kOptimizer, Strategy::kGradients, Strategy::kFull}) {
    for (const bool recompute : {false, true}) all.push_back({strategy, world, world, recompute});
  }
  all.push_back({Strategy::kFull, world, world, false, /*keep_gathered=*/true});
  all.push_back({Strategy::kFull, world, world, true, false, /*prefetch=*/0});
  if (world > 2) {
    for (const Strategy strategy : {Strategy::kOptimizer, Strategy::kGradients, Strategy::kFull}) {
      all.push_back({strategy, world, 2});  // hybrid
    }
  }
  return all;
}

// `micro_batches` of the whole step. Micro-batches are added as they are; a product that adds its
// terms to the sum (fuse_accumulation) would be another order inside a micro-batch.
RunOptions options_of(const Layout& l, int64_t micro_batches, double clip = 0) {
  RunOptions o{.step = small_step(), .world = l.world, .shard_size = l.shard_size};
  o.step.accumulate = micro_batches / l.world;
  o.step.passes.disable = {"fuse_accumulation"};
  o.step.clip_grad = clip;
  o.step.sharding.strategy = l.strategy;
  o.step.sharding.reshard_after_forward = !l.keep_gathered;
  o.step.sharding.prefetch = l.prefetch;
  o.step.sharding.overlap = l.overlap;
  if (l.full_recompute) o.step.recompute.policy = RecomputePolicy::kFull;
  return o;
}

const Layout kAlone{Strategy::kNone, 1, 1};

void expect_same_tensors(const std::map<std::string, HostTensor>& got,
                         const std::map<std::string, HostTensor>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    const HostTensor& other = got.at(name);
    ASSERT_TRUE(
        std::equal(tensor.as<float>().begin(), tensor.as<float>().end(), other.as<float>().begin()))
        << what << ": " << name;
  }
}

// With one micro-batch a rank the sums over ranks are the single process's sums over micro-batches,
// term by term: every bit is the same, for every strategy, as long as nothing depends on the
// gradient norm (whose terms are added by parts).
TEST(Sharded, OneMicroBatchARankGivesTheSingleProcessBits) {
  for (const int world : {2, 4}) {
    const Result want = run(options_of(kAlone, world));
    for (const Layout& layout : layouts(world)) {
      const bool hybrid = layout.shard_size > 1 && layout.shard_size < world;
      if (hybrid) continue;  // adds within shard groups first
      const Result got = run(options_of(layout, world));
      EXPECT_EQ(got.losses, want.losses) << text(layout);
      expect_same_tensors(got.weights, want.weights, text(layout));
      expect_same_tensors(got.first_moments, want.first_moments, text(layout));
    }
  }
}

TEST(Sharded, DataParallelWithClippingGivesTheSingleProcessBits) {
  for (const int world : {2, 4}) {
    const Result want = run(options_of(kAlone, world, 0.1)),
                 got = run(options_of({Strategy::kNone, world, 1}, world, 0.1));
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.grad_norms, want.grad_norms);
    expect_same_tensors(got.weights, want.weights, "none");
  }
}

// Sums of n terms x_i in two orders differ by at most 2 (n - 1) u sum |x_i|, u = 2^-24. The first
// moment after one step without clipping is (1 - beta1) g, rounded once more on each side.
TEST(Sharded, GradientsAgreeTensorByTensor) {
  constexpr int64_t kMicroBatches = 4;
  const auto terms = single_gradients(options_of(kAlone, kMicroBatches).step, kMicroBatches);
  RunOptions alone = options_of(kAlone, kMicroBatches);
  alone.steps = 1;
  const Result want = run(alone);
  const double share = 1 - alone.step.adamw.beta1;
  for (const int world : {1, 2, 4}) {
    for (const Layout& layout : layouts(world)) {
      RunOptions options = options_of(layout, kMicroBatches);
      options.steps = 1;
      options.poison = true;
      const Result got = run(options);
      for (const auto& [name, tensor] : want.first_moments) {
        const auto a = tensor.as<float>(), b = got.first_moments.at(name).as<float>();
        for (size_t i = 0; i < a.size(); ++i) {
          double magnitude = 0;
          for (const auto& grads : terms) magnitude += std::abs(grads.at(name).as<float>()[i]);
          const double bound = 0x1p-24 * share * magnitude * (2 * (kMicroBatches - 1) + 2);
          ASSERT_LE(std::abs(double{a[i]} - b[i]), bound)
              << text(layout) << ": " << name << " " << i;
        }
      }
    }
  }
}

// What another order of addition does to 20 losses is what reversing the micro-batches does to
// those of the single process; other orders of as many terms may do a few times as much.
TEST(Sharded, LossesOfTwentyStepsStayWithinTheOrderOfAddition) {
  constexpr double kOrders = 8;
  constexpr int64_t kMicroBatches = 4;  // accumulation 2 and 1
  RunOptions alone = options_of(kAlone, kMicroBatches, 0.5);
  const Result want = run(alone);
  alone.reverse = true;
  const Result reversed = run(alone);
  for (const int world : {2, 4}) {
    for (const Layout& layout : layouts(world)) {
      const Result got = run(options_of(layout, kMicroBatches, 0.5));
      double spread = 0;
      for (size_t i = 0; i < want.losses.size(); ++i) {
        spread = std::max(
            {spread, std::abs(reversed.losses[i] - want.losses[i]), 0x1p-22 * want.losses[i]});
        EXPECT_NEAR(got.losses[i], want.losses[i], kOrders * spread)
            << text(layout) << " step " << i;
      }
    }
  }
}

// An all_reduce of n elements that ranks do not divide moves up to a part's remainder less or more.
TEST(Sharded, RanksReceiveTheBytesOfThePlan) {
  for (const Layout& layout : layouts(4)) {
    RunOptions options = options_of(layout, 8);
    options.steps = 2;
    const Result result = run(options);
    EXPECT_NEAR(static_cast<double>(result.received_bytes), static_cast<double>(result.planned_bytes),
                1e-3 * static_cast<double>(result.planned_bytes) + 64)
        << text(layout);
  }
}

// States that are divided take a rank's part of the bytes, up to the padding of parts.
TEST(Sharded, ThePlanDividesWhatTheStrategyNames) {
  const auto bytes_of = [](const Layout& layout, const char* category) {
    train::StepOptions step = options_of(layout, 8).step;
    step.sharding.mesh = dist::make_mesh(layout.world, 0, layout.shard_size);
    const train::StepPrograms programs = train::build_step(step, cpu_target());
    return static_cast<double>(combine(programs.all()).by_category.at(category));
  };
  for (const Strategy strategy : {Strategy::kOptimizer, Strategy::kGradients, Strategy::kFull}) {
    const Layout layout{strategy, 4, 4};
    const auto share = [&](const char* category) { return bytes_of(layout, category) / bytes_of(kAlone, category); };
    EXPECT_NEAR(share("moments"), 0.25, 0.01);
    EXPECT_NEAR(share("gradients"), strategy == Strategy::kOptimizer ? 1 : 0.25, 0.01);
    EXPECT_NEAR(share("weights"), strategy == Strategy::kFull ? 0.25 : 1, 0.01);
  }
}

TEST(Sharded, ARunRepeatedGivesTheSameBits) {
  const Layout layout{Strategy::kFull, 4, 2, true};
  const Result a = run(options_of(layout, 8, 0.5)), b = run(options_of(layout, 8, 0.5));
  EXPECT_EQ(a.losses, b.losses);
  expect_same_tensors(a.weights, b.weights, "repeated");
}

// bf16 weights with a split master: the same bits again, since only the sums matter. (Recompute is
// on for all or none: in bf16 it rounds what a fused op does not.)
TEST(Sharded, Bf16WithASplitMaster) {
  for (const DType gradients : {DType::kF32, DType::kBF16}) {
    std::vector<Result> results;
    const bool recompute = gradients == DType::kBF16;
    for (Layout layout : {kAlone, Layout{Strategy::kNone, 2, 1}, Layout{Strategy::kOptimizer, 2, 2},
                          Layout{Strategy::kGradients, 2, 2}, Layout{Strategy::kFull, 2, 2}}) {
      layout.full_recompute = recompute;
      RunOptions options = options_of(layout, 2);
      options.steps = 4;
      options.step.dtype = DType::kBF16;
      options.step.gradient_dtype = gradients;
      results.push_back(run(options));
      // Both round the sum of two bf16 terms, taken in f32, to bf16.
      EXPECT_EQ(results.back().losses, results.front().losses) << text(layout);
      expect_same_tensors(results.back().weights, results.front().weights, text(layout));
    }
  }
}

}  // namespace
}  // namespace wam::multirank
