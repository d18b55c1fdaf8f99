// Where an episode's rows and pictures lie: the part of a LeRobot dataset that differs between
// versions. v2 has a file for each episode; v3.0 puts many into one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "wam/data/dataset.h"

namespace wam::data {

// Rows of a file that belong to an episode: row r of the episode is row or frame first + r.
struct FrameSource {
  std::filesystem::path path;
  int64_t first = 0;
  // Rows of all the episodes that the meta puts into the file. A file with fewer is damaged.
  int64_t total = 0;
  // Other episodes may share the file, so that the rows' episode_index must be looked at.
  bool is_shared = false;
};

// Immutable; thread-safe.
class EpisodeLayout {
 public:
  virtual ~EpisodeLayout() = default;
  virtual FrameSource table(const Episode& episode) const = 0;
  // `camera` is a video feature. Throws DataError where the meta does not say where its videos are.
  virtual FrameSource video(const Episode& episode, const std::string& camera) const = 0;
};

}  // namespace wam::data
