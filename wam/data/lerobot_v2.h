// Datasets of LeRobot v2.0 and v2.1: one parquet file and one video a camera for every episode.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "wam/data/lerobot_dataset.h"

namespace wam::data {

// meta/episodes.jsonl and meta/tasks.jsonl. Throws DataError.
LerobotMeta read_lerobot_v2(const std::filesystem::path& root, const LerobotInfo& info);

// Where the files lie needs no meta but info.json.
std::unique_ptr<EpisodeLayout> make_layout_v2(const std::filesystem::path& root,
                                              const LerobotInfo& info);

// Files of an episode, relative paths expanded.
std::filesystem::path table_path(const std::filesystem::path& root, const LerobotInfo& info,
                                 int64_t episode_index);
// Throws DataError when info.json has no video_path.
std::filesystem::path video_path(const std::filesystem::path& root, const LerobotInfo& info,
                                 int64_t episode_index, const std::string& camera);

}  // namespace wam::data
