#include "wam/sim/expert.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "wam/base/error.h"

namespace wam::sim {
namespace {

constexpr int kMaxSteps = 200;

// Steps until success, kMaxSteps if there was none.
int run_expert(World& world, const ExpertPolicy& expert) {
  while (!world.success() && world.num_steps() < kMaxSteps) world.step(expert.act(world));
  return world.num_steps();
}

TEST(Expert, SucceedsOnEverySeed) {
  for (int num_blocks = 2; num_blocks <= kMaxBlocks; ++num_blocks) {
    World world({.num_blocks = num_blocks});
    for (uint64_t seed = 0; seed < 100; ++seed) {
      world.reset(seed);
      const int steps = run_expert(world, ExpertPolicy());
      EXPECT_TRUE(world.success()) << "seed " << seed;
      EXPECT_GE(steps, 28) << "seed " << seed;
      EXPECT_LE(steps, 100) << "seed " << seed;
    }
  }
}

TEST(Expert, SucceedsWithTheMostNoiseAndAtOtherRates) {
  for (const double fps : {5.0, 10.0, 30.0}) {
    World world({.fps = fps});
    for (uint64_t seed = 0; seed < 30; ++seed) {
      world.reset(seed);
      while (!world.success() && world.num_steps() < 40 * fps) {
        world.step(ExpertPolicy({.noise = 0.5}).act(world));
      }
      EXPECT_TRUE(world.success()) << "fps " << fps << " seed " << seed;
    }
  }
}

// What a policy in training may leave behind: a wrong block in the fingers, fingers shut on
// nothing, the named block dropped on the way.
TEST(Expert, RecoversFromWhatOthersDid) {
  World world({});
  const ExpertPolicy expert;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    world.reset(seed);
    const Task asked = world.task();
    const Task other{asked.color == BlockColor::kRed ? BlockColor::kBlue : BlockColor::kRed,
                     asked.pad};
    World wrong = world.with_task(other);
    while (!wrong.holds_named_block()) wrong.step(expert.act(wrong));
    World back = wrong.with_task(asked);
    run_expert(back, expert);
    EXPECT_TRUE(back.success()) << seed;

    world.reset(seed);
    for (int i = 0; i < 6; ++i) world.step({{}, 1});
    run_expert(world, expert);
    EXPECT_TRUE(world.success()) << seed;

    world.reset(seed);
    while (!world.holds_named_block()) world.step(expert.act(world));
    for (int i = 0; i < 4; ++i) world.step({{0, 0.1}, 0});
    run_expert(world, expert);
    EXPECT_TRUE(world.success()) << seed;
  }
}

TEST(Expert, NoiseIsAFunctionOfSeedAndStep) {
  World world({});
  world.reset(9);
  const ExpertPolicy expert;
  const Action first = expert.act(world), again = expert.act(world);
  EXPECT_EQ(first.velocity, again.velocity);
  EXPECT_NE(first.velocity, expert.act_without_noise(world).velocity);
  World other({});
  other.reset(9);
  other.step({});
  EXPECT_NE(expert.act(other).velocity.x - expert.act_without_noise(other).velocity.x,
            first.velocity.x - expert.act_without_noise(world).velocity.x);
}

TEST(Expert, OptionsAreChecked) {
  EXPECT_NO_THROW(validate(ExpertOptions{}, WorldConfig{}));
  EXPECT_THROW(validate(ExpertOptions{.cruise_speed = 0.3}, WorldConfig{}), ConfigError);
  EXPECT_THROW(validate(ExpertOptions{.cruise_speed = 0}, WorldConfig{}), ConfigError);
  EXPECT_THROW(validate(ExpertOptions{.noise = NAN}, WorldConfig{}), ConfigError);
  EXPECT_THROW(validate(ExpertOptions{.noise = 0.6}, WorldConfig{}), ConfigError);
}

// --- how predictable the demonstrations are ---

constexpr int kChunk = 8;  // actions predicted from one state
using Row = std::array<double, kActionSize>;
Row to_row(const Action& action) { return {action.velocity.x, action.velocity.y, action.close}; }

std::vector<Row> roll_out(World world, const ExpertPolicy& expert, bool noisy) {
  std::vector<Row> rows;
  for (int i = 0; i < kChunk; ++i) {
    rows.push_back(to_row(world.step(noisy ? expert.act(world) : expert.act_without_noise(world))));
  }
  return rows;
}

// The mean over all instructions the scene leaves open: what is held says which block was named.
std::vector<Row> roll_out_without_instruction(const World& world, const ExpertPolicy& expert) {
  std::vector<Row> mean(kChunk, Row{});
  std::vector<Task> tasks;
  for (const Block& block : world.scene().blocks) {
    const bool named =
        world.scene().held < 0 || world.scene().blocks[world.scene().held].color == block.color;
    for (const Pad pad : kPads) {
      if (named) tasks.push_back({block.color, pad});
    }
  }
  for (const Task task : tasks) {
    const std::vector<Row> rows = roll_out(world.with_task(task), expert, false);
    for (int i = 0; i < kChunk; ++i) {
      for (int d = 0; d < kActionSize; ++d) mean[i][d] += rows[i][d] / tasks.size();
    }
  }
  return mean;
}

// Mean absolute and root mean squared error per action dimension.
class Errors {
 public:
  void add(const std::vector<Row>& truth, const std::vector<Row>& prediction) {
    for (size_t i = 0; i < truth.size(); ++i) {
      for (int d = 0; d < kActionSize; ++d) {
        const double error = truth[i][d] - prediction[i][d];
        absolute_[d] += std::abs(error);
        squared_[d] += error * error;
      }
    }
    count_ += static_cast<double>(truth.size());
  }
  double absolute(int d) const { return absolute_[d] / count_; }
  double root_mean_square(int d) const { return std::sqrt(squared_[d] / count_); }

 private:
  Row absolute_{}, squared_{};
  double count_ = 0;
};

// The scenes at which an evaluation would start a chunk, over some episodes.
std::vector<World> chunk_starts(const ExpertPolicy& expert) {
  std::vector<World> starts;
  World world({});
  for (uint64_t seed = 0; seed < 200; ++seed) {
    world.reset(seed);
    for (int step = 0; !world.success(); ++step) {
      if (step % kChunk == 0) starts.push_back(world);
      world.step(expert.act(world));
    }
  }
  return starts;
}

TEST(Expert, ActionsFollowFromSceneAndInstructionButNotFromTheSceneAlone) {
  const ExpertPolicy expert;
  const std::vector<World> starts = chunk_starts(expert);
  std::vector<std::vector<Row>> truth;
  Row mean{};
  for (const World& world : starts) {
    truth.push_back(roll_out(world, expert, true));
    for (const Row& row : truth.back()) {
      for (int d = 0; d < kActionSize; ++d) mean[d] += row[d] / (starts.size() * kChunk);
    }
  }
  Errors of_mean, of_oracle, of_blind;
  for (size_t i = 0; i < starts.size(); ++i) {
    of_mean.add(truth[i], std::vector<Row>(kChunk, mean));
    of_oracle.add(truth[i], roll_out(starts[i], expert, false));
    of_blind.add(truth[i], roll_out_without_instruction(starts[i], expert));
  }
  constexpr std::array<const char*, kActionSize> kNames = {"vx", "vy", "close"};
  for (int d = 0; d < kActionSize; ++d) {
    const double oracle = of_oracle.absolute(d) / of_mean.absolute(d);
    const double blind = of_blind.absolute(d) / of_mean.absolute(d);
    printf(
        "%-6s mean action: mae %.4f rmse %.4f | oracle %.3f (rmse %.3f) of it | "
        "without instruction %.3f (rmse %.3f)\n",
        kNames[d], of_mean.absolute(d), of_mean.root_mean_square(d), oracle,
        of_oracle.root_mean_square(d) / of_mean.root_mean_square(d), blind,
        of_blind.root_mean_square(d) / of_mean.root_mean_square(d));
    EXPECT_LT(oracle, 0.25) << kNames[d];
    if (d < 2) {
      EXPECT_GT(blind, 0.5) << kNames[d];
    }
  }
}

}  // namespace
}  // namespace wam::sim
