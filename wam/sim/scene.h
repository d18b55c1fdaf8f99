// What is on the table. Lengths are in table widths: the table is the square [0, 1] x [0, 1], x to
// the right and y away from the robot (up in the pictures).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace wam::sim {

struct Vec2 {
  double x = 0, y = 0;
  friend Vec2 operator+(Vec2 a, Vec2 b) { return {a.x + b.x, a.y + b.y}; }
  friend Vec2 operator-(Vec2 a, Vec2 b) { return {a.x - b.x, a.y - b.y}; }
  friend Vec2 operator*(double s, Vec2 a) { return {s * a.x, s * a.y}; }
  bool operator==(const Vec2&) const = default;
};
// sqrt is exactly rounded everywhere, which std::hypot is not: scenes are reproducible to the bit.
inline double length(Vec2 a) { return std::sqrt(a.x * a.x + a.y * a.y); }

enum class BlockColor : uint8_t { kRed, kGreen, kBlue, kYellow };
inline constexpr int kMaxBlocks = 4;
enum class Pad : uint8_t { kLeft, kRight };
inline constexpr std::array<Pad, 2> kPads = {Pad::kLeft, Pad::kRight};

// The sizes of things, in table widths.
inline constexpr double kBlockHalf = 0.08;
inline constexpr double kPadHalf = 0.10;
inline constexpr double kPadRadius = 0.08;    // a block this near to a pad's centre is on the pad
inline constexpr double kGraspRadius = 0.05;  // a block this near can be grasped
inline constexpr double kHeldOpening = 0.25;  // the fingers' opening around a block
constexpr Vec2 pad_center(Pad pad) { return {pad == Pad::kLeft ? 0.13 : 0.87, 0.5}; }

struct Block {
  BlockColor color = BlockColor::kRed;
  Vec2 center;
};

struct Scene {
  Vec2 gripper;
  double opening = 1;         // 0 closed .. 1 open
  std::vector<Block> blocks;  // at most one of a colour
  int held = -1;              // place in `blocks`, -1: none
};

// What the instruction asks for: this block on that pad.
struct Task {
  BlockColor color = BlockColor::kRed;
  Pad pad = Pad::kLeft;
  bool operator==(const Task&) const = default;
};

std::string to_string(BlockColor color);  // "red"
std::string to_string(Pad pad);           // "left"

// The same task in other words; `paraphrase` in [0, kNumParaphrases).
inline constexpr int kNumParaphrases = 3;
std::string instruction_text(Task task, int paraphrase);

}  // namespace wam::sim
