#include "wam/sim/world.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "wam/base/error.h"

namespace wam::sim {
namespace {

// Closes or opens the fingers for `steps` steps without moving.
void work_fingers(World& world, bool close, int steps) {
  for (int i = 0; i < steps; ++i) world.step({{}, close ? 1.0 : 0.0});
}

// Drives in straight steps until the gripper stands on `target`.
void drive_to(World& world, Vec2 target, bool closed) {
  for (int i = 0; i < 1000 && length(target - world.scene().gripper) > 1e-12; ++i) {
    const Vec2 way = target - world.scene().gripper;
    world.step({world.config().fps * way, closed ? 1.0 : 0.0});
  }
  ASSERT_LE(length(target - world.scene().gripper), 1e-12);
}

TEST(World, SameSeedSameScene) {
  World a({}), b({});
  a.reset(17);
  b.reset(3);
  b.step({{0.1, 0.1}, 1});
  b.reset(17);
  EXPECT_EQ(a.instruction(), b.instruction());
  EXPECT_EQ(a.state(), b.state());
  for (size_t i = 0; i < a.scene().blocks.size(); ++i) {
    EXPECT_EQ(a.scene().blocks[i].center, b.scene().blocks[i].center);
  }
  b.reset(18);
  EXPECT_NE(a.state(), b.state());
}

TEST(World, LayoutsKeepTheirRules) {
  for (int num_blocks = 2; num_blocks <= kMaxBlocks; ++num_blocks) {
    World world({.num_blocks = num_blocks});
    for (uint64_t seed = 0; seed < 50; ++seed) {
      world.reset(seed);
      ASSERT_EQ(world.scene().blocks.size(), static_cast<size_t>(num_blocks));
      EXPECT_FALSE(world.success());
      EXPECT_GE(length(world.named_block().center - world.scene().gripper), 0.16);
      EXPECT_NE(world.instruction().find(to_string(world.named_block().color)), std::string::npos);
    }
  }
}

TEST(World, EveryTaskAndWordingIsDrawn) {
  World world({});
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    world.reset(seed);
    seen.insert(world.instruction());
  }
  EXPECT_EQ(seen.size(), size_t{3 * 2 * kNumParaphrases});
}

TEST(World, SpeedIsLimitedAndTheTableIsNotLeft) {
  World world({});
  const Action executed = world.step({{3e300, -4e300}, 0.7});
  EXPECT_NEAR(length(executed.velocity), world.config().max_speed, 1e-15);
  EXPECT_EQ(executed.close, 1.0);
  for (int i = 0; i < 200; ++i) world.step({{-1, 0.05}, 0});
  EXPECT_EQ(world.scene().gripper.x, 0.0);
  EXPECT_LE(world.scene().gripper.y, 1.0);
}

TEST(World, SlowActionsAreExecutedAsTheyAre) {
  World world({});
  const Vec2 before = world.scene().gripper;
  const Action executed = world.step({{0.03, -0.04}, 0.49});
  EXPECT_EQ(executed.velocity, (Vec2{0.03, -0.04}));
  EXPECT_EQ(executed.close, 0.0);
  EXPECT_NEAR(world.scene().gripper.x, before.x + 0.003, 1e-15);
  EXPECT_NEAR(world.scene().gripper.y, before.y - 0.004, 1e-15);
}

TEST(World, GraspCarryRelease) {
  World world({});
  world.reset(5);
  drive_to(world, world.named_block().center, false);
  work_fingers(world, true, 3);
  EXPECT_TRUE(world.holds_named_block());
  EXPECT_EQ(world.scene().opening, kHeldOpening);
  work_fingers(world, true, 3);
  EXPECT_EQ(world.scene().opening, kHeldOpening);  // the block is in the way
  drive_to(world, pad_center(world.task().pad), true);
  EXPECT_NEAR(world.goal_distance(), 0, 1e-12);
  EXPECT_FALSE(world.success());
  work_fingers(world, false, 1);
  EXPECT_TRUE(world.success());
  const Vec2 block = world.named_block().center;
  drive_to(world, {0.5, 0.5}, false);
  EXPECT_EQ(world.named_block().center, block);
}

TEST(World, FingersCloseOnNothing) {
  World world({});
  world.reset(5);
  work_fingers(world, true, 10);
  EXPECT_EQ(world.scene().opening, 0);
  EXPECT_EQ(world.scene().held, -1);
  // Fingers already closed do not grasp what they are moved over.
  drive_to(world, world.named_block().center, true);
  EXPECT_EQ(world.scene().held, -1);
}

TEST(World, WrongBlockOrWrongPadIsNoSuccess) {
  World world({});
  world.reset(5);
  drive_to(world, world.named_block().center, false);
  work_fingers(world, true, 3);
  const Pad other = world.task().pad == Pad::kLeft ? Pad::kRight : Pad::kLeft;
  drive_to(world, pad_center(other), true);
  work_fingers(world, false, 3);
  EXPECT_FALSE(world.success());
  EXPECT_TRUE(world.with_task({world.task().color, other}).success());
}

TEST(World, ActionsThatAreNotFiniteAreRefused) {
  World world({});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THROW(world.step({{nan, 0}, 0}), DataError);
  EXPECT_THROW(world.step({{0, infinity}, 0}), DataError);
  EXPECT_THROW(world.step({{0, 0}, nan}), DataError);
  EXPECT_EQ(world.num_steps(), 0);
}

TEST(World, ConfigIsChecked) {
  const auto refuses = [](WorldConfig config, const std::string& field) {
    try {
      World world(config);
      ADD_FAILURE() << field << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.info().where, "sim." + field);
    }
  };
  refuses({.fps = std::numeric_limits<double>::quiet_NaN()}, "fps");
  refuses({.max_speed = 0}, "max_speed");
  refuses({.num_blocks = 5}, "num_blocks");
  refuses({.view_size = 33}, "view_size");
  refuses({.view_size = 8}, "view_size");
  refuses({.gripper_view_half_width = 0}, "gripper_view_half_width");
}

}  // namespace
}  // namespace wam::sim
