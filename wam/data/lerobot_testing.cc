#include "wam/data/lerobot_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <tuple>

#include "wam/base/check.h"
#include "wam/base/files.h"
#include "wam/data/image_codec.h"
#include "wam/data/parquet_columns.h"
#include "wam/data/repack.h"
#include "wam/data/video_testing.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kStateWidth = 4, kActionWidth = 3;

int64_t first_index(const TestDatasetOptions& options, int64_t episode) {
  return std::accumulate(options.lengths.begin(), options.lengths.begin() + episode, int64_t{0});
}

HostTensor waves(int64_t rows, int64_t width, int64_t episode, double phase) {
  HostTensor tensor(DType::kF32, {rows, width});
  for (int64_t i = 0; i < rows * width; ++i) {
    const double x = phase + 0.3 * static_cast<double>(i % width) +
                     0.7 * static_cast<double>(i / width) + 1.1 * static_cast<double>(episode);
    tensor.as<float>()[i] = static_cast<float>(std::sin(x));
  }
  return tensor;
}

template <typename T, typename Value>
HostTensor scalars(DType dtype, int64_t rows, Value&& value) {
  HostTensor tensor(dtype, {rows});
  for (int64_t i = 0; i < rows; ++i) tensor.as<T>()[i] = static_cast<T>(value(i));
  return tensor;
}

int64_t picture_number(int64_t episode, size_t camera, int64_t frame) {
  return 100 * episode + 1000 * static_cast<int64_t>(camera) + frame;
}

ParquetImages pictures(const TestDatasetOptions& options, int64_t episode, size_t camera) {
  ParquetImages images;
  for (int64_t frame = 0; frame < options.lengths[episode]; ++frame) {
    const std::vector<uint8_t> rgb =
        test_picture(options.width, options.height, picture_number(episode, camera, frame));
    const std::vector<std::byte> png = encode_png(rgb, options.height, options.width, 1);
    images.push_back({.bytes = {reinterpret_cast<const char*>(png.data()), png.size()},
                      .path = fmt::format("frame_{:06d}.png", frame)});
  }
  return images;
}

json info_json(const TestDatasetOptions& options) {
  const auto episodes = static_cast<int64_t>(options.lengths.size());
  json features;
  const auto add = [&](const std::string& key, const char* dtype, std::vector<int64_t> shape) {
    features[key] = {{"dtype", dtype}, {"shape", shape}, {"names", nullptr}};
  };
  add("observation.state", "float32", {kStateWidth});
  add("action", "float32", {kActionWidth});
  add("timestamp", "float32", {1});
  for (const char* key : {"frame_index", "episode_index", "index", "task_index"}) {
    add(key, "int64", {1});
  }
  for (const std::string& camera : options.cameras) {
    add(camera, options.images_in_parquet ? "image" : "video", {options.height, options.width, 3});
    features[camera]["names"] = {"height", "width", "channel"};
    if (options.images_in_parquet) continue;
    features[camera]["info"] = {{"video.fps", options.fps},
                                {"video.codec", "h264"},
                                {"video.pix_fmt", "yuv420p"},
                                {"video.is_depth_map", false}};
  }
  const auto num_cameras = static_cast<int64_t>(options.cameras.size());
  return {{"codebase_version", options.version},
          {"robot_type", "test"},
          {"total_episodes", episodes},
          {"total_frames", first_index(options, episodes)},
          {"total_tasks", 2},
          {"total_videos", options.images_in_parquet ? 0 : episodes * num_cameras},
          {"total_chunks", 1},
          {"chunks_size", 1000},
          {"fps", options.fps},
          {"splits", {{"train", fmt::format("0:{}", episodes)}}},
          {"data_path", "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"},
          {"video_path",
           "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"},
          {"features", features}};
}

json modality_json(const TestDatasetOptions& options) {
  json modality;
  modality["state"]["arm"] = {{"start", 0}, {"end", 3}};
  modality["state"]["gripper"] = {{"start", 3}, {"end", 4}};
  modality["action"]["arm"] = {{"start", 0}, {"end", 3}};
  for (const std::string& camera : options.cameras) {
    modality["video"][camera.substr(camera.rfind('.') + 1)] = {{"original_key", camera}};
  }
  modality["annotation"]["task"] = {{"original_key", "task_index"}};
  return modality;
}

json column_stats(const std::vector<const HostTensor*>& parts) {
  const int64_t width = parts.front()->shape()[1];
  json stats;
  for (int64_t dim = 0; dim < width; ++dim) {
    double min = INFINITY, max = -INFINITY, sum = 0, squares = 0;
    int64_t count = 0;
    for (const HostTensor* part : parts) {
      for (int64_t i = dim; i < part->num_elements(); i += width, ++count) {
        const double value = part->as<float>()[static_cast<size_t>(i)];
        min = std::min(min, value), max = std::max(max, value);
        sum += value, squares += value * value;
      }
    }
    const double mean = sum / static_cast<double>(count);
    for (const char* name : {"min", "q01"}) stats[name].push_back(min);
    for (const char* name : {"max", "q99"}) stats[name].push_back(max);
    stats["mean"].push_back(mean);
    stats["std"].push_back(std::sqrt(squares / static_cast<double>(count) - mean * mean));
    stats["count"] = {count};
  }
  return stats;
}

// Statistics of all episodes (-1) or one. q01 and q99 are the extremes: near enough for tests.
json stats_json(const TestDatasetOptions& options, int64_t only = -1) {
  json stats;
  for (const auto& [column, phase, width] : {std::tuple("observation.state", 0.0, kStateWidth),
                                             std::tuple("action", 0.5, kActionWidth)}) {
    std::vector<HostTensor> waves_of;
    for (int64_t episode = 0; episode < std::ssize(options.lengths); ++episode) {
      if (only >= 0 && episode != only) continue;
      waves_of.push_back(waves(options.lengths[episode], width, episode, phase));
    }
    std::vector<const HostTensor*> parts;
    for (const HostTensor& part : waves_of) parts.push_back(&part);
    stats[column] = column_stats(parts);
  }
  return stats;
}

void write_lines(const fs::path& path, const std::vector<json>& lines) {
  std::string text;
  for (const json& line : lines) text += line.dump() + "\n";
  write_text(path, text);
}

void write_meta(const fs::path& root, const TestDatasetOptions& options) {
  std::vector<json> episodes;
  for (size_t i = 0; i < options.lengths.size(); ++i) {
    episodes.push_back({{"episode_index", i},
                        {"tasks", {i % 2 == 0 ? "push" : "pull"}},
                        {"length", options.lengths[i]}});
  }
  write_text(root / "meta/info.json", info_json(options).dump(1));
  write_lines(root / "meta/episodes.jsonl", episodes);
  write_lines(root / "meta/tasks.jsonl",
              {{{"task_index", 0}, {"task", "push"}}, {{"task_index", 1}, {"task", "pull"}}});
  if (options.has_modality) write_text(root / "meta/modality.json", modality_json(options).dump(1));
  if (!options.has_stats) return;
  write_text(root / "meta/stats.json", stats_json(options).dump(1));
  std::vector<json> lines;
  for (int64_t episode = 0; episode < std::ssize(options.lengths); ++episode) {
    lines.push_back({{"episode_index", episode}, {"stats", stats_json(options, episode)}});
  }
  write_lines(root / "meta/episodes_stats.jsonl", lines);
}

void write_video(const fs::path& path, const TestDatasetOptions& options, int64_t episode,
                 size_t camera) {
  fs::create_directories(path.parent_path());
  VideoWriter writer(path, options.width, options.height, options.fps, {.gop = 5, .b_frames = 2});
  for (int64_t frame = 0; frame < options.lengths[episode]; ++frame) {
    writer.write(
        test_picture(options.width, options.height, picture_number(episode, camera, frame)));
  }
  writer.finish();
}

}  // namespace

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  WAM_CHECK(file.good()) << path.string();
}

fs::path test_table_path(const fs::path& root, int64_t episode) {
  return root / fmt::format("data/chunk-000/episode_{:06d}.parquet", episode);
}

fs::path test_video_path(const fs::path& root, int64_t episode, const std::string& camera) {
  return root / fmt::format("videos/chunk-000/{}/episode_{:06d}.mp4", camera, episode);
}

std::vector<ParquetColumnData> test_columns(const TestDatasetOptions& options, int64_t episode) {
  const int64_t rows = options.lengths[episode], first = first_index(options, episode);
  std::vector<ParquetColumnData> columns = {
      {"observation.state", waves(rows, kStateWidth, episode, 0)},
      {"action", waves(rows, kActionWidth, episode, 0.5)},
      {"timestamp",
       scalars<float>(DType::kF32, rows,
                      [&](int64_t i) { return static_cast<double>(i) / options.fps; })},
      {"frame_index", scalars<int64_t>(DType::kI64, rows, [](int64_t i) { return i; })},
      {"episode_index", scalars<int64_t>(DType::kI64, rows, [&](int64_t) { return episode; })},
      {"index", scalars<int64_t>(DType::kI64, rows, [&](int64_t i) { return first + i; })},
      {"task_index", scalars<int64_t>(DType::kI64, rows, [&](int64_t) { return episode % 2; })}};
  for (size_t camera = 0; options.images_in_parquet && camera < options.cameras.size(); ++camera) {
    columns.push_back({options.cameras[camera], pictures(options, episode, camera)});
  }
  return columns;
}

HostTensor& find_numbers(std::vector<ParquetColumnData>& columns, const std::string& name) {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const auto& column) { return column.name == name; });
  WAM_CHECK(found != columns.end()) << name;
  return std::get<HostTensor>(found->values);
}

void edit_json(const fs::path& path, const std::function<void(json&)>& edit) {
  json value = json::parse(read_text_file(path));
  edit(value);
  write_text(path, value.dump(1));
}

void edit_table(const fs::path& root, const TestDatasetOptions& options, int64_t episode,
                const std::function<void(std::vector<ParquetColumnData>&)>& edit) {
  std::vector<ParquetColumnData> columns = test_columns(options, episode);
  edit(columns);
  write_parquet(test_table_path(root, episode), columns);
}

void edit_parquet(const fs::path& path,
                  const std::function<void(std::vector<ParquetColumnData>&)>& edit) {
  std::vector<ParquetColumnData> columns;
  {
    const ParquetReader reader(path);
    columns = read_stored_columns(reader, 0, reader.num_rows(), {});
  }
  edit(columns);
  write_parquet(path, columns);
}

fs::path test_v3_episodes_path(const fs::path& root) {
  return root / "meta/episodes/chunk-000/file-000.parquet";
}

void write_test_dataset(const fs::path& root, const TestDatasetOptions& options) {
  if (options.version == "v3.0") {
    TestDatasetOptions v2 = options;
    v2.version = "v2.1";
    const fs::path parts = root.string() + ".v21";
    write_test_dataset(parts, v2);
    repack_as_v3(parts, root, {.episodes_per_file = options.episodes_per_file});
    fs::remove_all(parts);
    return;
  }
  write_meta(root, options);
  fs::create_directories(root / "data/chunk-000");
  for (int64_t episode = 0; episode < std::ssize(options.lengths); ++episode) {
    edit_table(root, options, episode, [](auto&) {});
    for (size_t camera = 0; !options.images_in_parquet && camera < options.cameras.size();
         ++camera) {
      write_video(test_video_path(root, episode, options.cameras[camera]), options, episode,
                  camera);
    }
  }
}

}  // namespace wam::data
