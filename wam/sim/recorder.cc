#include "wam/sim/recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "wam/base/error.h"

namespace wam::sim {
namespace {

constexpr int kRestSteps = 4;  // rows after success: the policy is to learn to stop
constexpr int kMaxSteps = 10000;

void record_step(World& world, const ExpertPolicy& expert, const PictureSink& sink,
                 EpisodeRecord& record) {
  const std::array<HostTensor, kNumCameras> views = {world.render_overview(),
                                                     world.render_gripper()};
  for (int camera = 0; camera < kNumCameras; ++camera) {
    const std::span<const uint8_t> bytes = views[camera].as<uint8_t>();
    record.pictures[camera].add(bytes);
    sink(camera, bytes);
  }
  const auto state = world.state();
  record.states.insert(record.states.end(), state.begin(), state.end());
  const Action action = world.step(expert.act(world));
  for (const double value : {action.velocity.x, action.velocity.y, action.close}) {
    record.actions.push_back(static_cast<float>(value));
  }
  ++record.length;
}

}  // namespace

void PictureStats::add(std::span<const uint8_t> rgb_hwc) {
  for (size_t i = 0; i < rgb_hwc.size(); ++i) {
    const uint8_t value = rgb_hwc[i];
    const size_t channel = i % 3;
    min_[channel] = std::min(min_[channel], value);
    max_[channel] = std::max(max_[channel], value);
    sum_[channel] += value;
    sum_of_squares_[channel] += uint64_t{value} * value;
  }
  num_pixels_ += rgb_hwc.size() / 3;
  ++num_pictures_;
}

double PictureStats::mean(int channel) const {
  return static_cast<double>(sum_[channel]) / static_cast<double>(num_pixels_) / 255.0;
}

double PictureStats::std(int channel) const {
  const double square =
      static_cast<double>(sum_of_squares_[channel]) / static_cast<double>(num_pixels_);
  const double mean_value = 255.0 * mean(channel);
  return std::sqrt(std::max(0.0, square - mean_value * mean_value)) / 255.0;
}

EpisodeRecord record_episode(World& world, const ExpertPolicy& expert, uint64_t seed,
                             const PictureSink& sink) {
  world.reset(seed);
  EpisodeRecord record;
  record.instruction = world.instruction();
  for (int rested = 0; rested < kRestSteps; rested += world.success() ? 1 : 0) {
    if (record.length == kMaxSteps) {
      throw ConfigError({.where = "sim.expert",
                         .what = "the expert did not reach its goal",
                         .got = fmt::format("{} steps with seed {}", kMaxSteps, seed),
                         .expected = "fewer steps",
                         .remedy = "Raise cruise_speed, or lower fps or noise."});
    }
    record_step(world, expert, sink, record);
  }
  return record;
}

}  // namespace wam::sim
