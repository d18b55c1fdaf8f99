#include "wam/sim/world.h"

#include <fmt/format.h>

#include <algorithm>

#include "wam/base/check.h"
#include "wam/base/philox.h"

namespace wam::sim {
namespace {

struct Area {
  Vec2 low, high;
};
// Where things may lie at the start: the gripper in the middle, the blocks at the front and the
// back of the table, clear of the pads at its sides. So every episode has two real journeys, and
// where both lead is decided by the instruction.
constexpr Area kHome{{0.42, 0.42}, {0.58, 0.58}};
constexpr std::array<Area, 2> kBlockAreas = {
    {{{0.24, 0.10}, {0.76, 0.26}}, {{0.24, 0.74}, {0.76, 0.90}}}};
constexpr double kBlockSpacing = 0.2;
constexpr double kFingerStep = 0.25;  // opening gained or lost per step
constexpr int kMaxTries = 10000;      // a draw of four blocks succeeds one time in eight or so

Vec2 draw_point(Random& random, const Area& area) {
  const double x = area.low.x + (area.high.x - area.low.x) * random.uniform();
  const double y = area.low.y + (area.high.y - area.low.y) * random.uniform();
  return {x, y};
}

bool are_spaced(const std::vector<Block>& blocks) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (length(blocks[i].center - blocks[j].center) < kBlockSpacing) return false;
    }
  }
  return true;
}

std::vector<Block> draw_blocks(Random& random, int count) {
  std::vector<Block> blocks(count);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    for (int i = 0; i < count; ++i) {
      const Area& area = kBlockAreas[random.below(kBlockAreas.size())];
      blocks[i] = {static_cast<BlockColor>(i), draw_point(random, area)};
    }
    if (are_spaced(blocks)) return blocks;
  }
  WAM_CHECK(false) << "no layout found for " << count << " blocks";
  return {};
}

Vec2 limit_speed(Vec2 velocity, double max_speed) {
  // Scaled down by the larger component first: the square of a huge one would overflow.
  const double largest = std::max(std::abs(velocity.x), std::abs(velocity.y));
  if (largest > max_speed) velocity = (max_speed / largest) * velocity;
  const double speed = length(velocity);
  return speed > max_speed ? (max_speed / speed) * velocity : velocity;
}

void require_finite(const Action& action, int step) {
  if (std::isfinite(action.velocity.x) && std::isfinite(action.velocity.y) &&
      std::isfinite(action.close)) {
    return;
  }
  throw DataError({.where = fmt::format("sim step {}", step),
                   .what = "action is not finite",
                   .got = fmt::format("vx {}, vy {}, close {}", action.velocity.x,
                                      action.velocity.y, action.close),
                   .expected = "finite numbers",
                   .remedy = "Look at the policy's output."});
}

void require(bool holds, const std::string& where, const char* field, const std::string& got,
             const char* expected) {
  if (holds) return;
  throw ConfigError({.where = where + "." + field,
                     .what = "value out of range",
                     .got = got,
                     .expected = expected,
                     .remedy = "Choose a value in the range."});
}

}  // namespace

void validate(const WorldConfig& config, const std::string& where) {
  // Written so that NaN fails.
  require(config.fps >= 1 && config.fps <= 120, where, "fps", fmt::format("{}", config.fps),
          "1 to 120");
  require(config.max_speed > 0 && config.max_speed <= 2, where, "max_speed",
          fmt::format("{}", config.max_speed), "over 0, at most 2 table widths per second");
  require(config.num_blocks >= 2 && config.num_blocks <= kMaxBlocks, where, "num_blocks",
          fmt::format("{}", config.num_blocks), "2 to 4");
  require(config.view_size >= 16 && config.view_size <= 1024 && config.view_size % 2 == 0, where,
          "view_size", fmt::format("{}", config.view_size), "an even number from 16 to 1024");
  require(config.gripper_view_half_width >= 0.1 && config.gripper_view_half_width <= 1, where,
          "gripper_view_half_width", fmt::format("{}", config.gripper_view_half_width), "0.1 to 1");
}

World::World(const WorldConfig& config) : config_(config) {
  validate(config);
  reset(0);
}

void World::reset(uint64_t seed) {
  Random random(seed, RandomUse::kSim, 0, 0);
  seed_ = seed;
  num_steps_ = 0;
  task_.color = static_cast<BlockColor>(random.below(config_.num_blocks));
  task_.pad = kPads[random.below(kPads.size())];
  instruction_ = instruction_text(task_, static_cast<int>(random.below(kNumParaphrases)));
  scene_ = {};
  scene_.blocks = draw_blocks(random, config_.num_blocks);
  scene_.gripper = draw_point(random, kHome);
}

Action World::step(const Action& action) {
  require_finite(action, num_steps_);
  const Action executed{limit_speed(action.velocity, config_.max_speed),
                        action.close >= 0.5 ? 1.0 : 0.0};
  const Vec2 wanted = scene_.gripper + (1 / config_.fps) * executed.velocity;
  const Vec2 reached{std::clamp(wanted.x, 0.0, 1.0), std::clamp(wanted.y, 0.0, 1.0)};
  if (scene_.held >= 0) {
    Vec2& block = scene_.blocks[scene_.held].center;
    block = block + (reached - scene_.gripper);
  }
  scene_.gripper = reached;
  move_fingers(executed.close == 1.0);
  ++num_steps_;
  return executed;
}

// Closing stops at a block within reach, which is then held until the fingers open again.
void World::move_fingers(bool close) {
  if (!close) {
    scene_.opening = std::min(1.0, scene_.opening + kFingerStep);
    scene_.held = -1;
    return;
  }
  if (scene_.held >= 0) return;
  const bool was_around = scene_.opening > kHeldOpening;
  scene_.opening = std::max(0.0, scene_.opening - kFingerStep);
  if (!was_around || scene_.opening > kHeldOpening) return;
  for (size_t i = 0; i < scene_.blocks.size(); ++i) {
    if (length(scene_.blocks[i].center - scene_.gripper) <= kGraspRadius) {
      scene_.held = static_cast<int>(i);
      return;
    }
  }
}

HostTensor World::render_overview() const {
  return render(scene_, overview_camera(config_.view_size));
}

HostTensor World::render_gripper() const {
  return render(scene_, gripper_camera(scene_, config_.gripper_view_half_width, config_.view_size));
}

std::array<float, kStateSize> World::state() const {
  return {static_cast<float>(scene_.gripper.x), static_cast<float>(scene_.gripper.y),
          static_cast<float>(scene_.opening)};
}

const Block& World::named_block() const {
  // Blocks are in the order of their colours.
  return scene_.blocks.at(static_cast<size_t>(task_.color));
}

bool World::holds_named_block() const { return scene_.held == static_cast<int>(task_.color); }

double World::goal_distance() const { return length(named_block().center - pad_center(task_.pad)); }

bool World::success() const { return !holds_named_block() && goal_distance() <= kPadRadius; }

World World::with_task(Task task) const {
  WAM_CHECK(static_cast<int>(task.color) < config_.num_blocks);
  World other = *this;
  other.task_ = task;
  other.instruction_ = instruction_text(task, 0);
  return other;
}

}  // namespace wam::sim
