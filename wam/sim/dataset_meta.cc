#include "wam/sim/dataset_meta.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "wam/base/files.h"

namespace wam::sim {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order people expect

constexpr std::array<const char*, 4> kIntegerColumns = {"frame_index", "episode_index", "index",
                                                        "task_index"};
constexpr const char* kDataTemplate =
    "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet";
constexpr const char* kVideoTemplate =
    "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4";

// A rate that is a whole number is written as one, as LeRobot does.
Json rate(double fps) {
  const auto whole = static_cast<int64_t>(fps);
  return static_cast<double>(whole) == fps ? Json(whole) : Json(fps);
}

Json vector_feature(int size, std::vector<std::string> names) {
  return {{"dtype", "float32"}, {"shape", {size}}, {"names", std::move(names)}};
}

Json scalar_feature(const char* dtype) {
  return {{"dtype", dtype}, {"shape", {1}}, {"names", nullptr}};
}

Json video_feature(const CollectOptions& options, const DatasetMeta& meta) {
  const int size = options.world.view_size;
  return {{"dtype", "video"},
          {"shape", {size, size, 3}},
          {"names", {"height", "width", "channel"}},
          {"info",
           {{"video.height", size},
            {"video.width", size},
            {"video.codec", meta.codec},
            {"video.pix_fmt", meta.pixel_format},
            {"video.is_depth_map", false},
            {"video.fps", rate(options.world.fps)},
            {"video.channels", 3},
            {"has_audio", false}}}};
}

Json features_json(const CollectOptions& options, const DatasetMeta& meta) {
  Json features;
  features[kStateColumn] = vector_feature(kStateSize, {"x", "y", "opening"});
  features[kActionColumn] = vector_feature(kActionSize, {"vx", "vy", "close"});
  for (int camera = 0; camera < kNumCameras; ++camera) {
    features[camera_feature(camera)] = video_feature(options, meta);
  }
  features["timestamp"] = scalar_feature("float32");
  for (const char* name : kIntegerColumns) features[name] = scalar_feature("int64");
  return features;
}

Json info_json(const CollectOptions& options, const DatasetMeta& meta) {
  const auto num_episodes = static_cast<int64_t>(meta.episodes.size());
  int64_t num_frames = 0;
  for (const EpisodeMeta& episode : meta.episodes) num_frames += episode.length;
  return {{"codebase_version", "v2.1"},
          {"robot_type", "sim_table"},
          {"total_episodes", num_episodes},
          {"total_frames", num_frames},
          {"total_tasks", meta.tasks.size()},
          {"total_videos", num_episodes * kNumCameras},
          {"total_chunks", (num_episodes + kChunkSize - 1) / kChunkSize},
          {"chunks_size", kChunkSize},
          {"fps", rate(options.world.fps)},
          {"splits", {{"train", fmt::format("0:{}", num_episodes)}}},
          {"data_path", kDataTemplate},
          {"video_path", kVideoTemplate},
          {"features", features_json(options, meta)}};
}

Json slice(int begin, int end, const char* column) {
  return {{"start", begin}, {"end", end}, {"original_key", column}};
}

Json modality_json() {
  Json modality;
  modality["state"]["arm"] = slice(0, 2, kStateColumn);
  modality["state"]["gripper"] = slice(2, 3, kStateColumn);
  modality["action"]["arm"] = slice(0, 2, kActionColumn);
  modality["action"]["gripper"] = slice(2, 3, kActionColumn);
  for (int camera = 0; camera < kNumCameras; ++camera) {
    modality["video"][kCameraNames[camera]] = {{"original_key", camera_feature(camera)}};
  }
  modality["annotation"]["human.action.task_description"] = {{"original_key", "task_index"}};
  return modality;
}

// Statistics of an episode's pictures in LeRobot's shape [3, 1, 1].
Json pictures_json(const PictureStats& pictures) {
  Json json;
  const auto put = [&](const char* name, double (PictureStats::*value)(int) const) {
    for (int channel = 0; channel < 3; ++channel) {
      json[name].push_back(Json::array({Json::array({(pictures.*value)(channel)})}));
    }
  };
  put("min", &PictureStats::min);
  put("max", &PictureStats::max);
  put("mean", &PictureStats::mean);
  put("std", &PictureStats::std);
  json["count"] = {pictures.num_pictures()};
  return json;
}

Json episode_stats_json(const EpisodeMeta& episode) {
  Json stats;
  for (const auto& [name, column] : episode.columns) {
    stats[name] = {{"min", column.min},
                   {"max", column.max},
                   {"mean", column.mean},
                   {"std", column.std},
                   {"count", {column.count}}};
  }
  for (int camera = 0; camera < kNumCameras; ++camera) {
    stats[camera_feature(camera)] = pictures_json(episode.pictures[camera]);
  }
  return {{"episode_index", episode.index}, {"stats", std::move(stats)}};
}

Json stats_json(const std::map<std::string, ColumnStats>& columns) {
  Json stats;
  for (const auto& [name, column] : columns) {
    stats[name] = {{"mean", column.mean}, {"std", column.std}, {"min", column.min},
                   {"max", column.max},   {"q01", column.q01}, {"q99", column.q99}};
  }
  return stats;
}

std::string episodes_text(const DatasetMeta& meta) {
  std::string text;
  for (const EpisodeMeta& episode : meta.episodes) {
    const Json line = {{"episode_index", episode.index},
                       {"tasks", Json::array({episode.task})},
                       {"length", episode.length}};
    text += line.dump() + "\n";
  }
  return text;
}

std::string tasks_text(const DatasetMeta& meta) {
  std::string text;
  for (size_t i = 0; i < meta.tasks.size(); ++i) {
    text += Json{{"task_index", i}, {"task", meta.tasks[i]}}.dump() + "\n";
  }
  return text;
}

std::string episodes_stats_text(const DatasetMeta& meta) {
  std::string text;
  for (const EpisodeMeta& episode : meta.episodes)
    text += episode_stats_json(episode).dump() + "\n";
  return text;
}

}  // namespace

std::string camera_feature(int camera) {
  return std::string("observation.images.") + kCameraNames.at(camera);
}

std::filesystem::path table_path(int64_t episode) {
  return fmt::format("data/chunk-{:03d}/episode_{:06d}.parquet", episode / kChunkSize, episode);
}

std::filesystem::path video_path(int64_t episode, int camera) {
  return fmt::format("videos/chunk-{:03d}/{}/episode_{:06d}.mp4", episode / kChunkSize,
                     camera_feature(camera), episode);
}

void Columns::append(const Columns& other) {
  for (const auto column :
       {&Columns::states, &Columns::actions, &Columns::timestamp, &Columns::frame_index,
        &Columns::episode_index, &Columns::index, &Columns::task_index}) {
    std::vector<double>& mine = this->*column;
    const std::vector<double>& theirs = other.*column;
    mine.insert(mine.end(), theirs.begin(), theirs.end());
  }
}

std::map<std::string, ColumnStats> compute_stats(const Columns& columns) {
  return {{kStateColumn, compute_column_stats(columns.states, kStateSize)},
          {kActionColumn, compute_column_stats(columns.actions, kActionSize)},
          {"timestamp", compute_column_stats(columns.timestamp, 1)},
          {"frame_index", compute_column_stats(columns.frame_index, 1)},
          {"episode_index", compute_column_stats(columns.episode_index, 1)},
          {"index", compute_column_stats(columns.index, 1)},
          {"task_index", compute_column_stats(columns.task_index, 1)}};
}

std::string table_features() {
  const auto value = [](const char* dtype) { return Json{{"dtype", dtype}, {"_type", "Value"}}; };
  const auto list = [&](int size) {
    return Json{{"feature", value("float32")}, {"length", size}, {"_type", "Sequence"}};
  };
  Json features;
  features[kStateColumn] = list(kStateSize);
  features[kActionColumn] = list(kActionSize);
  features["timestamp"] = value("float32");
  for (const char* name : kIntegerColumns) features[name] = value("int64");
  return Json{{"info", {{"features", std::move(features)}}}}.dump();
}

void write_meta(const std::filesystem::path& root, const CollectOptions& options,
                const DatasetMeta& meta) {
  const std::filesystem::path folder = root / "meta";
  write_file_atomic(folder / "info.json", info_json(options, meta).dump(4) + "\n");
  write_file_atomic(folder / "episodes.jsonl", episodes_text(meta));
  write_file_atomic(folder / "tasks.jsonl", tasks_text(meta));
  write_file_atomic(folder / "episodes_stats.jsonl", episodes_stats_text(meta));
  write_file_atomic(folder / "stats.json", stats_json(meta.columns).dump(4) + "\n");
  write_file_atomic(folder / "modality.json", modality_json().dump(4) + "\n");
}

}  // namespace wam::sim
