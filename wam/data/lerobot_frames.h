// Pictures of a dataset's episodes: from videos, or from image columns of parquet files. Where an
// episode's pictures lie is the version's business, behind FrameLocator.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "wam/data/dataset.h"
#include "wam/data/video_reader.h"

namespace wam::data {

// Rows of a file that belong to an episode: row r of the episode is row or frame first + r.
struct FrameSource {
  std::filesystem::path path;
  int64_t first = 0;
  bool must_end = false;  // the file holds this episode only, so that its length can be checked
};

class FrameLocator {
 public:
  virtual ~FrameLocator() = default;
  virtual const std::filesystem::path& root() const = 0;
  // Null for an unknown key.
  virtual const Feature* find_feature(const std::string& key) const = 0;
  virtual FrameSource video(const Episode& episode, const std::string& camera) const = 0;
  virtual FrameSource table(const Episode& episode) const = 0;
};

// `locator` must outlive the reader.
std::unique_ptr<FrameReader> make_lerobot_frame_reader(const FrameLocator& locator,
                                                       std::shared_ptr<VideoIndexCache> indexes);

}  // namespace wam::data
