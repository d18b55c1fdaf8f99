// The built-in robot world: a gripper moves over a table with coloured blocks and two pads and is
// told which block to put where. It makes the demonstration's dataset and serves as a closed-loop
// test bed. Deterministic: reset(seed) and the actions fix everything. Not thread-safe.
#pragma once

#include <array>
#include <string>

#include "wam/sim/render.h"
#include "wam/sim/scene.h"

namespace wam::sim {

struct WorldConfig {
  double fps = 10;                       // steps per second
  double max_speed = 0.2;                // of the gripper, table widths per second
  int num_blocks = 3;                    // 2 .. 4: red, green, blue, yellow in this order
  int view_size = 64;                    // pixels per side of each camera; even, 16 .. 1024
  double gripper_view_half_width = 0.5;  // what the gripper's camera sees, table widths
  bool operator==(const WorldConfig&) const = default;
};
// Throws ConfigError, naming the field under `where` ("sim").
void validate(const WorldConfig& config, const std::string& where = "sim");

struct Action {
  Vec2 velocity;     // table widths per second
  double close = 0;  // >= 0.5: close the fingers, else open them
};
inline constexpr int kStateSize = 3;   // x, y, opening
inline constexpr int kActionSize = 3;  // vx, vy, close

class World {
 public:
  explicit World(const WorldConfig& config);  // validates; starts as reset(0)

  // A new layout, task and wording, all drawn from `seed`.
  void reset(uint64_t seed);
  // Moves on by 1 / fps. The speed is cut to max_speed and the gripper stays on the table; returns
  // the action as executed. Throws DataError when a number is not finite.
  Action step(const Action& action);

  HostTensor render_overview() const;  // [view_size, view_size, 3] u8 RGB
  HostTensor render_gripper() const;   // the same size, the gripper in the middle
  std::array<float, kStateSize> state() const;
  const std::string& instruction() const { return instruction_; }

  // The named block lies on the named pad and the gripper has let go of it.
  bool success() const;
  // From the named block to the named pad's centre, table widths.
  double goal_distance() const;

  const WorldConfig& config() const { return config_; }
  const Scene& scene() const { return scene_; }
  Task task() const { return task_; }
  const Block& named_block() const;
  bool holds_named_block() const;
  uint64_t seed() const { return seed_; }
  int num_steps() const { return num_steps_; }  // since reset
  // The same scene under another instruction: what would be done if something else were asked for.
  World with_task(Task task) const;

 private:
  void move_fingers(bool close);

  WorldConfig config_;
  uint64_t seed_ = 0;
  int num_steps_ = 0;
  Scene scene_;
  Task task_;
  std::string instruction_;
};

}  // namespace wam::sim
