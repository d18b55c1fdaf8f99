// The programs of several ranks on one GPU, and of one rank with a communicator of the GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/multirank/ranks.h"
#include "wam/base/error.h"
#include "wam/dist/device_groups.h"
#include "wam/train/device.h"

namespace wam::multirank {
namespace {

using train::Strategy;

constexpr Strategy kStrategies[] = {Strategy::kNone, Strategy::kOptimizer, Strategy::kGradients,
                                    Strategy::kFull};

RunOptions options_of(Strategy strategy, int world, int shard_size, int64_t micro_batches) {
  RunOptions o{.step = small_step(), .world = world};
  o.shard_size = strategy == Strategy::kNone ? 1 : shard_size;
  o.step.accumulate = micro_batches / world;
  o.step.passes.disable = {"fuse_accumulation"};
  o.step.clip_grad = 0;
  o.step.sharding.strategy = strategy;
  o.device = "cuda";
  return o;
}

void expect_same(const Result& got, const Result& want, const std::string& what) {
  EXPECT_EQ(got.losses, want.losses) << what;
  ASSERT_EQ(got.weights.size(), want.weights.size());
  for (const auto& [name, tensor] : want.weights) {
    ASSERT_TRUE(std::ranges::equal(tensor.as<float>(), got.weights.at(name).as<float>()))
        << what << ": " << name;
  }
}

double largest_difference(const Result& a, const Result& b) {
  double largest = 0;
  for (size_t i = 0; i < a.losses.size(); ++i)
    largest = std::max(largest, std::abs(a.losses[i] - b.losses[i]));
  return largest;
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    try {
      train::open_device("cuda");
    } catch (const DeviceError& error) {
      GTEST_SKIP() << "needs a GPU: " << error.what();
    }
  }
};

using ShardedOnOneGpu = Gpu;

// Sums over ranks are taken in the order of the ranks, as one rank sums its micro-batches.
TEST_F(ShardedOnOneGpu, FourRanksGiveTheBitsOfOne) {
  const Result want = run(options_of(Strategy::kNone, 1, 1, 4));
  for (const Strategy strategy : kStrategies) {
    for (const ExecMode exec : {ExecMode::kStream, ExecMode::kGraph}) {
      for (const bool recompute : {false, true}) {
        RunOptions options = options_of(strategy, 4, 4, 4);
        options.exec = exec;
        if (recompute) options.step.recompute.policy = RecomputePolicy::kFull;
        expect_same(run(options), want, std::string(train::name(strategy)));
      }
    }
  }
}

// The GPU's sums inside its kernels are in another order than the CPU's. How 20 losses answer to
// the order of 4 terms (3 roundings) is seen on the CPU; between the devices some hundred ops in
// a row differ by a rounding or two each.
TEST_F(ShardedOnOneGpu, FourRanksAgreeWithTheCpu) {
  constexpr double kRoundings = 200.0 / 3;
  RunOptions alone = options_of(Strategy::kNone, 1, 1, 4);
  alone.device = "cpu";
  const Result want = run(alone);
  alone.reverse = true;
  const double spread = std::max(largest_difference(run(alone), want), 0x1p-22 * want.losses[0]);
  for (const Strategy strategy : kStrategies) {
    for (const int shard_size : {2, 4}) {
      for (const int64_t micro_batches : {4, 8}) {
        RunOptions cpu = options_of(Strategy::kNone, 1, 1, micro_batches);
        cpu.device = "cpu";
        const double off = largest_difference(
            run(options_of(strategy, 4, shard_size, micro_batches)), run(cpu));
        std::printf("%s, groups of %d, %ld micro-batches: losses of 20 steps within %.2g of the CPU's\n",
                    std::string(train::name(strategy)).c_str(), shard_size, long{micro_batches}, off);
        EXPECT_LE(off, kRoundings * spread) << train::name(strategy);
      }
    }
  }
}

// A copy inside a group of one adds nothing up: no bit changes, wherever graphs are cut.
TEST_F(ShardedOnOneGpu, NcclInAWorldOfOneChangesNoBit) {
  if (!dist::has_nccl()) GTEST_SKIP() << "needs a build with NCCL";
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    RunOptions plain = options_of(Strategy::kNone, 1, 1, 2);
    plain.step.dtype = dtype;
    const Result want = run(plain);
    for (const Strategy strategy : kStrategies) {
      for (const bool cut : {false, true}) {
        RunOptions options = options_of(strategy, 1, 1, 2);
        options.step.dtype = dtype;
        options.nccl = options.step.sharding.keep_lone = true;
        options.cut_at_collectives = cut;
        const Result got = run(options);
        expect_same(got, want, std::string(train::name(strategy)) + (cut ? ", cut" : ", captured"));
        EXPECT_GT(got.collective_seconds, 0) << train::name(strategy);
      }
    }
  }
}

}  // namespace
}  // namespace wam::multirank
