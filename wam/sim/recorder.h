// Plays one episode of the expert and records what a dataset needs of it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "wam/sim/expert.h"
#include "wam/sim/world.h"

namespace wam::sim {

inline constexpr int kNumCameras = 2;
inline constexpr std::array<const char*, kNumCameras> kCameraNames = {"overview", "gripper"};

// Running per-channel statistics of one camera's pictures, in the scale 0 .. 1.
class PictureStats {
 public:
  void add(std::span<const uint8_t> rgb_hwc);
  int64_t num_pictures() const { return num_pictures_; }
  double min(int channel) const { return min_[channel] / 255.0; }
  double max(int channel) const { return max_[channel] / 255.0; }
  double mean(int channel) const;
  double std(int channel) const;

 private:
  // Integers: exact in any order, and never too large (2^63 holds 10^14 pixels).
  std::array<uint8_t, 3> min_{255, 255, 255}, max_{};
  std::array<uint64_t, 3> sum_{}, sum_of_squares_{};
  uint64_t num_pixels_ = 0;
  int64_t num_pictures_ = 0;
};

struct EpisodeRecord {
  std::string instruction;
  int64_t length = 0;          // rows; row i is what was seen, then done, at step i
  std::vector<float> states;   // [length, kStateSize]
  std::vector<float> actions;  // [length, kActionSize], as executed
  std::array<PictureStats, kNumCameras> pictures;
};

// Receives every picture in order: its camera (place in kCameraNames) and its bytes.
using PictureSink = std::function<void(int camera, std::span<const uint8_t> rgb_hwc)>;

// Resets the world to `seed` and lets the expert act until it has succeeded and rested a moment.
// Throws ConfigError when it does not get there within 10000 steps.
EpisodeRecord record_episode(World& world, const ExpertPolicy& expert, uint64_t seed,
                             const PictureSink& sink);

}  // namespace wam::sim
