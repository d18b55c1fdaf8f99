// The scripted demonstrator: goes to the named block, grasps it, carries it to the named pad and
// lets go. It looks at the scene only, never at a memory of its own, so that what it does next can
// be told from the pictures, the state and the instruction.
#pragma once

#include "wam/sim/world.h"

namespace wam::sim {

struct ExpertOptions {
  double cruise_speed = 0.16;  // table widths per second; slower near a target
  double noise = 0.1;          // standard deviation of each velocity component over the speed
  bool operator==(const ExpertOptions&) const = default;
};
// Throws ConfigError, naming the field under `where`.
void validate(const ExpertOptions& options, const WorldConfig& world,
              const std::string& where = "sim.expert");

class ExpertPolicy {
 public:
  explicit ExpertPolicy(const ExpertOptions& options = {}) : options_(options) {}
  // The next action. The noise is a pure function of the world's seed and step.
  Action act(const World& world) const;
  // The same without noise.
  Action act_without_noise(const World& world) const;

 private:
  ExpertOptions options_;
};

}  // namespace wam::sim
