#include "wam/sim/expert.h"

#include <fmt/format.h>

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/philox.h"

namespace wam::sim {
namespace {

constexpr double kArrived = 0.02;          // table widths
constexpr double kApproachRate = 4.0;      // speed per remaining distance, 1 / s
constexpr double kMaxStepShare = 0.5;      // of the remaining distance, in one step
constexpr double kMaxNoiseDeviations = 3;  // longer tails are cut

Vec2 velocity_towards(const World& world, Vec2 target, double cruise_speed) {
  const Vec2 way = target - world.scene().gripper;
  const double distance = length(way);
  if (distance == 0) return {};
  const double rate = std::min(kApproachRate, kMaxStepShare * world.config().fps);
  return (std::min(cruise_speed, rate * distance) / distance) * way;
}

// Whether the fingers should close, on the way to a block `distance` away.
bool should_close(const Scene& scene, double distance) {
  // Closed around nothing, or around a block that was not asked for: let go first.
  if (scene.opening <= kHeldOpening) return false;
  // Fingers that have begun to close go on, or a noisy step would open them again.
  return distance <= kArrived || (scene.opening < 1 && distance <= kGraspRadius);
}

}  // namespace

void validate(const ExpertOptions& options, const WorldConfig& world, const std::string& where) {
  if (!(options.cruise_speed > 0 && options.cruise_speed <= world.max_speed)) {
    throw ConfigError({.where = where + ".cruise_speed",
                       .what = "value out of range",
                       .got = fmt::format("{}", options.cruise_speed),
                       .expected = fmt::format("over 0, at most max_speed {}", world.max_speed),
                       .remedy = "Lower cruise_speed or raise max_speed."});
  }
  if (!(options.noise >= 0 && options.noise <= 0.5)) {
    throw ConfigError({.where = where + ".noise",
                       .what = "value out of range",
                       .got = fmt::format("{}", options.noise),
                       .expected = "0 to 0.5",
                       .remedy = "Beyond that the expert no longer finds its way."});
  }
}

Action ExpertPolicy::act_without_noise(const World& world) const {
  const Vec2 gripper = world.scene().gripper;
  if (world.holds_named_block()) {
    const Vec2 pad = pad_center(world.task().pad);
    const double close = length(pad - gripper) <= kArrived ? 0 : 1;
    return {velocity_towards(world, pad, options_.cruise_speed), close};
  }
  if (world.success()) return {};
  const Vec2 block = world.named_block().center;
  const bool close = should_close(world.scene(), length(block - gripper));
  return {velocity_towards(world, block, options_.cruise_speed), close ? 1.0 : 0.0};
}

Action ExpertPolicy::act(const World& world) const {
  Action action = act_without_noise(world);
  Random random(world.seed(), RandomUse::kSim, 1, static_cast<uint64_t>(world.num_steps()));
  const double deviation = options_.noise * length(action.velocity);
  for (double* component : {&action.velocity.x, &action.velocity.y}) {
    *component +=
        deviation * std::clamp(random.normal(), -kMaxNoiseDeviations, kMaxNoiseDeviations);
  }
  return action;
}

}  // namespace wam::sim
