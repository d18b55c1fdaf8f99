// The meta/ folder of a collected dataset: info.json, episodes.jsonl, tasks.jsonl,
// episodes_stats.jsonl (LeRobot v2.1), stats.json with percentiles and modality.json (GEAR).
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "wam/sim/collect.h"
#include "wam/sim/column_stats.h"
#include "wam/sim/recorder.h"

namespace wam::sim {

inline constexpr int kChunkSize = 1000;  // episodes per chunk folder
inline constexpr const char* kStateColumn = "observation.state";
inline constexpr const char* kActionColumn = "action";

std::string camera_feature(int camera);  // "observation.images.overview"
// Relative to the dataset's folder.
std::filesystem::path table_path(int64_t episode);
std::filesystem::path video_path(int64_t episode, int camera);

// The numbers of one or more episodes by column, row-major; the columns' order is the file's.
struct Columns {
  std::vector<double> states, actions;  // [rows, kStateSize], [rows, kActionSize]
  std::vector<double> timestamp, frame_index, episode_index, index, task_index;  // [rows]
  void append(const Columns& other);
};

// What the meta files say about one episode.
struct EpisodeMeta {
  int64_t index = 0, length = 0;
  std::string task;
  std::map<std::string, ColumnStats> columns;
  std::array<PictureStats, kNumCameras> pictures;
};

std::map<std::string, ColumnStats> compute_stats(const Columns& columns);

struct DatasetMeta {
  std::vector<EpisodeMeta> episodes;
  std::vector<std::string> tasks;              // by task_index
  std::map<std::string, ColumnStats> columns;  // over all episodes
  std::string codec, pixel_format;
};

// The footer entry "huggingface" of every table, by which the datasets library knows its columns.
std::string table_features();

// Writes the six files into root/meta, which exists.
void write_meta(const std::filesystem::path& root, const CollectOptions& options,
                const DatasetMeta& meta);

}  // namespace wam::sim
