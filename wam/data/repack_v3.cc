// Writes a v2.0 or v2.1 dataset as LeRobot v3.0.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/log.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/data/json_fields.h"
#include "wam/data/lerobot_info.h"
#include "wam/data/lerobot_meta.h"
#include "wam/data/lerobot_v2.h"
#include "wam/data/parquet_columns.h"
#include "wam/data/repack.h"
#include "wam/data/video_concat.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDataPath = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";
constexpr const char* kVideoPath =
    "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4";
constexpr int64_t kFilesPerChunk = 1000;

// Which of a kind's files is being written.
struct FileNumber {
  int64_t chunk = 0, file = 0;
  int64_t episodes = 0, bytes = 0, rows = 0;  // in it so far

  void next() {
    *this = {file + 1 == kFilesPerChunk ? chunk + 1 : chunk, (file + 1) % kFilesPerChunk};
  }
  // Whether an episode of `more` bytes must go to the next file.
  bool is_full(int64_t more, int64_t max_bytes, int64_t max_episodes) const {
    if (episodes == 0) return false;
    return bytes + more > max_bytes || (max_episodes > 0 && episodes >= max_episodes);
  }
};

std::string file_name(const FileNumber& number, const char* ending) {
  return fmt::format("chunk-{:03d}/file-{:03d}.{}", number.chunk, number.file, ending);
}

// A column of meta/episodes being filled, one number a row.
using IntColumn = std::vector<int64_t>;
using RealColumn = std::vector<double>;

HostTensor tensor_of(const IntColumn& values) {
  HostTensor tensor(DType::kI64, {std::ssize(values)});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
  return tensor;
}
HostTensor tensor_of(const RealColumn& values) {
  HostTensor tensor(DType::kF64, {std::ssize(values)});
  std::copy(values.begin(), values.end(), tensor.as<double>().begin());
  return tensor;
}

// One camera's files.
struct VideoTrack {
  std::string camera;
  FileNumber number;
  std::unique_ptr<VideoConcat> file;
  IntColumn chunk, index;
  RealColumn from, to;
};

class RepackerV3 {
 public:
  RepackerV3(const fs::path& source, const fs::path& target, const RepackV3Options& options)
      : source_(source), target_(target), options_(options), info_(read_lerobot_info(source)) {
    if (info_.is_v3()) {
      throw DataError({.where = source.string(),
                       .what = "the dataset is of v3.0 already",
                       .remedy = "Name one of v2.0 or v2.1."});
    }
    episodes_ = read_episodes(source);
    std::set<int64_t> discarded(info_.discarded_episodes.begin(), info_.discarded_episodes.end());
    std::erase_if(episodes_, [&](const Episode& e) { return discarded.contains(e.index); });
    for (const Feature& feature : info_.features) {
      if (feature.is_video()) add_track(feature.key);
    }
  }

  void run() {
    for (const Episode& episode : episodes_) {
      add_table(episode);
      for (VideoTrack& track : tracks_) add_video(track, episode);
    }
    if (table_ != nullptr) table_->finish();
    for (VideoTrack& track : tracks_) {
      if (track.file != nullptr) track.file->finish();
    }
    copy_meta();
    write_tasks();
    write_episodes();
    write_info();  // last: a folder without it is no dataset
  }

 private:
  // A camera without any video (recorders list such) is left out.
  void add_track(const std::string& camera) {
    const bool has_any = std::any_of(episodes_.begin(), episodes_.end(), [&](const Episode& e) {
      return fs::exists(video_path(source_, info_, e.index, camera));
    });
    if (has_any) {
      tracks_.emplace_back().camera = camera;
      return;
    }
    absent_.insert(camera);
    log_warn(source_.string() + ": camera " + quote(camera) + " has no videos and is left out");
  }

  void add_table(const Episode& episode) {
    const fs::path path = table_path(source_, info_, episode.index);
    const ParquetReader reader(path);
    if (reader.num_rows() != episode.length) {
      throw DataError({.where = path.string(),
                       .what = "table has another number of rows than the meta says",
                       .got = std::to_string(reader.num_rows()),
                       .expected = std::to_string(episode.length),
                       .remedy = "Run `wam validate`, and correct the dataset first."});
    }
    const auto bytes = static_cast<int64_t>(fs::file_size(path));
    if (data_.is_full(bytes, options_.data_file_bytes, options_.episodes_per_file)) {
      table_->finish();
      table_ = nullptr;
      data_.next();
    }
    if (table_ == nullptr) {
      const fs::path file = target_ / "data" / file_name(data_, "parquet");
      fs::create_directories(file.parent_path());
      table_ = std::make_unique<ParquetWriter>(file);
    }
    std::vector<std::string> left_out;
    table_->write_row_group(
        read_stored_columns(reader, 0, episode.length, info_.features, &left_out));
    if (!left_out.empty()) {
      throw DataError(
          {.where = path.string(),
           .what = "columns that cannot be copied: " + join(left_out, ", "),
           .remedy = "Remove them from the tables, or convert with LeRobot's scripts."});
    }
    chunk_.push_back(data_.chunk);
    file_.push_back(data_.file);
    from_.push_back(next_row_);
    next_row_ += episode.length;
    to_.push_back(next_row_);
    ++data_.episodes;
    data_.bytes += bytes;
  }

  void add_video(VideoTrack& track, const Episode& episode) {
    const fs::path path = video_path(source_, info_, episode.index, track.camera);
    std::error_code missing;
    const auto size = fs::file_size(path, missing);
    const int64_t bytes = missing ? 0 : static_cast<int64_t>(size);
    const bool is_full =
        track.number.is_full(bytes, options_.video_file_bytes, options_.episodes_per_file);
    if (track.file != nullptr && (is_full || !track.file->fits(path))) {
      track.file->finish();
      track.file = nullptr;
      track.number.next();
    }
    if (track.file == nullptr) {
      const fs::path file = target_ / "videos" / track.camera / file_name(track.number, "mp4");
      fs::create_directories(file.parent_path());
      track.file = std::make_unique<VideoConcat>(file, info_.fps);
    }
    const int64_t first = track.file->num_frames();
    const int64_t frames = track.file->append(path);
    if (frames != episode.length) {
      throw DataError({.where = path.string(),
                       .what = "video has another number of frames than the episode has rows",
                       .got = std::to_string(frames),
                       .expected = std::to_string(episode.length),
                       .remedy = "Correct the video or leave the episode out: in a file of many "
                                 "episodes it would move all later ones."});
    }
    track.chunk.push_back(track.number.chunk);
    track.index.push_back(track.number.file);
    track.from.push_back(static_cast<double>(first) / info_.fps);
    track.to.push_back(static_cast<double>(first + frames) / info_.fps);
    ++track.number.episodes;
    track.number.bytes += bytes;
  }

  // Statistics of the whole, names of slices and whatever else there is.
  void copy_meta() {
    static const std::set<std::string> rewritten = {"info.json", "episodes.jsonl", "tasks.jsonl",
                                                    "episodes_stats.jsonl"};
    fs::create_directories(target_ / "meta");
    for (const auto& entry : fs::directory_iterator(source_ / "meta")) {
      if (rewritten.contains(entry.path().filename().string())) continue;
      fs::copy(entry.path(), target_ / "meta" / entry.path().filename(),
               fs::copy_options::recursive);
    }
  }

  void write_tasks() {
    ParquetText texts;
    IntColumn indexes;
    for (const auto& [index, text] : read_tasks(source_)) {
      indexes.push_back(index);
      texts.push_back(text);
    }
    if (indexes.empty()) return;
    // What pandas needs to take the text for the index, as LeRobot writes it.
    const std::string pandas =
        R"({"index_columns": ["task"], "column_indexes": [], "columns": [)"
        R"({"name": "task_index", "field_name": "task_index", "pandas_type": "int64", )"
        R"("numpy_type": "int64", "metadata": null}, {"name": "task", "field_name": "task", )"
        R"("pandas_type": "unicode", "numpy_type": "object", "metadata": null}], )"
        R"("pandas_version": "2.0.0"})";
    write_parquet(target_ / "meta" / "tasks.parquet",
                  {{"task_index", tensor_of(indexes)}, {"task", std::move(texts)}},
                  {.metadata = {{"pandas", pandas}}});
  }

  void write_episodes() {
    IntColumn index, length;
    ParquetTextList tasks;
    for (const Episode& episode : episodes_) {
      index.push_back(episode.index);
      length.push_back(episode.length);
      tasks.push_back(episode.tasks);
    }
    const IntColumn zeros(episodes_.size(), 0);
    std::vector<ParquetColumnData> columns = {
        {"episode_index", tensor_of(index)},   {"tasks", std::move(tasks)},
        {"length", tensor_of(length)},         {"data/chunk_index", tensor_of(chunk_)},
        {"data/file_index", tensor_of(file_)}, {"dataset_from_index", tensor_of(from_)},
        {"dataset_to_index", tensor_of(to_)}};
    for (const VideoTrack& track : tracks_) {
      const std::string prefix = "videos/" + track.camera + "/";
      columns.push_back({prefix + "chunk_index", tensor_of(track.chunk)});
      columns.push_back({prefix + "file_index", tensor_of(track.index)});
      columns.push_back({prefix + "from_timestamp", tensor_of(track.from)});
      columns.push_back({prefix + "to_timestamp", tensor_of(track.to)});
    }
    add_statistics(columns);
    columns.push_back({"meta/episodes/chunk_index", tensor_of(zeros)});
    columns.push_back({"meta/episodes/file_index", tensor_of(zeros)});
    const fs::path path = target_ / "meta" / "episodes" / "chunk-000" / "file-000.parquet";
    fs::create_directories(path.parent_path());
    write_parquet(path, columns);
  }

  // Columns stats/FEATURE/STATISTIC, where every episode has them in one width.
  void add_statistics(std::vector<ParquetColumnData>& columns) {
    const fs::path path = source_ / "meta" / "episodes_stats.jsonl";
    if (!fs::exists(path)) return;
    std::map<int64_t, size_t> rows;
    for (const Episode& episode : episodes_) rows.emplace(episode.index, rows.size());
    // column -> values of each row; a row without values leaves the column out.
    std::map<std::string, std::vector<std::vector<double>>> stats;
    for_each_line(path, [&](std::string_view line, const std::string& where) {
      const Json json = parse_json_object(line, where);
      const auto row = rows.find(json_int(json, "episode_index", where));
      if (row == rows.end()) return;
      for (const auto& [feature, table] : json_member(json, "stats", where).items()) {
        if (!table.is_object() || absent_.contains(feature)) continue;
        for (const auto& [name, values] : table.items()) {
          auto& column = stats["stats/" + feature + "/" + name];
          column.resize(rows.size());
          column[row->second] = json_flat_numbers(values, where + ": " + quote(feature));
        }
      }
    });
    for (const auto& [name, values] : stats) add_statistic(name, values, columns);
  }

  void add_statistic(const std::string& name, const std::vector<std::vector<double>>& values,
                     std::vector<ParquetColumnData>& columns) {
    const size_t width = values.front().size();
    const bool is_whole =
        width > 0 &&
        std::all_of(values.begin(), values.end(), [&](const auto& v) { return v.size() == width; });
    if (!is_whole) {
      log_warn(source_.string() + ": " + name + " is left out: not every episode has it");
      return;
    }
    HostTensor numbers(DType::kF64, {std::ssize(values), static_cast<int64_t>(width)});
    for (size_t row = 0; row < values.size(); ++row) {
      std::copy(values[row].begin(), values[row].end(),
                numbers.as<double>().begin() + static_cast<int64_t>(row * width));
    }
    if (name.ends_with("/count")) {
      columns.push_back({name, numbers.to(DType::kI64)});
      return;
    }
    // Of pictures [3, 1, 1].
    const bool is_picture = width == 3 && is_camera(name);
    columns.push_back(
        {name, is_picture ? numbers.reshaped({std::ssize(values), 3, 1, 1}) : std::move(numbers)});
  }

  bool is_camera(const std::string& name) const {
    const std::string feature = name.substr(6, name.rfind('/') - 6);
    const Feature* found = info_.find_feature(feature);
    return found != nullptr && found->is_camera();
  }

  void write_info() {
    Json info = read_json_object(source_ / "meta" / "info.json");
    info["codebase_version"] = "v3.0";
    for (const char* key : {"total_chunks", "total_videos", "discarded_episode_indices"}) {
      info.erase(key);
    }
    info["total_episodes"] = episodes_.size();
    info["total_frames"] = next_row_;
    info["chunks_size"] = kFilesPerChunk;
    info["data_files_size_in_mb"] = std::max<int64_t>(1, options_.data_file_bytes >> 20);
    info["video_files_size_in_mb"] = std::max<int64_t>(1, options_.video_file_bytes >> 20);
    info["data_path"] = kDataPath;
    info["video_path"] = tracks_.empty() ? Json(nullptr) : Json(kVideoPath);
    info["splits"] = {{"train", fmt::format("0:{}", episodes_.size())}};
    Json& features = info["features"];
    for (const std::string& camera : absent_) features.erase(camera);
    for (auto& [key, feature] : features.items()) {
      if (feature.value("dtype", "") != "video") feature["fps"] = info["fps"];
    }
    write_file_atomic(target_ / "meta" / "info.json", info.dump(4));
  }

  fs::path source_, target_;
  RepackV3Options options_;
  LerobotInfo info_;
  std::vector<Episode> episodes_;
  std::vector<VideoTrack> tracks_;
  std::set<std::string> absent_;
  std::unique_ptr<ParquetWriter> table_;
  FileNumber data_;
  IntColumn chunk_, file_, from_, to_;  // of each episode
  int64_t next_row_ = 0;
};

}  // namespace

void repack_as_v3(const fs::path& source, const fs::path& target, const RepackV3Options& options) {
  require_new_folder(target);
  RepackerV3(source, target, options).run();
}

}  // namespace wam::data
