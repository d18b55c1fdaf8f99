// Pictures of a dataset's episodes: from videos, or from image columns of parquet files. Where an
// episode's pictures lie is the version's business, behind EpisodeLayout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/lerobot_layout.h"
#include "wam/data/video_reader.h"

namespace wam::data {

// What the reader needs to know of a dataset.
struct FrameRules {
  std::filesystem::path root;
  const std::vector<Feature>* features = nullptr;
  const EpisodeLayout* layout = nullptr;
};

// What `rules` points to must outlive the reader.
std::unique_ptr<FrameReader> make_lerobot_frame_reader(const FrameRules& rules,
                                                       std::shared_ptr<VideoIndexCache> indexes);

}  // namespace wam::data
