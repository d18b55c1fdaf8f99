// meta/info.json of LeRobot datasets, all versions: what it says, checked, before anything is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/path_template.h"

namespace wam::data {

struct LerobotInfo {
  std::string version;  // "v2.1"
  std::string robot_type;
  double fps = 0;
  int64_t chunks_size = 1000;
  // -1 where the file says nothing.
  int64_t total_episodes = -1, total_frames = -1, total_tasks = -1, total_videos = -1;
  PathTemplate data_path, video_path;  // video_path may be empty
  std::vector<Feature> features;
  std::vector<int64_t> discarded_episodes;

  bool is_v3() const { return version == "v3.0"; }
  const Feature* find_feature(const std::string& key) const;
};

// Throws DataError naming file and field: absent, not JSON, a version this program does not read,
// fps or chunks_size not above 0, templates that leave the folder, features without type or shape
// or with "/" in their name.
LerobotInfo read_lerobot_info(const std::filesystem::path& root);

// Versions that open_dataset() reads.
bool is_supported_version(const std::string& version);

// Throws DataError when info.json has no video_path although `camera` is a video.
void require_video_path(const LerobotInfo& info, const std::filesystem::path& root,
                        const std::string& camera);

}  // namespace wam::data
