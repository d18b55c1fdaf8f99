// meta/episodes and meta/tasks.parquet of LeRobot v3.0, row by row.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "wam/base/quote.h"
#include "wam/data/lerobot_meta.h"
#include "wam/data/lerobot_v3.h"
#include "wam/data/parquet_reader.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxExact = 9007199254740992.0;  // 2^53: whole numbers of parquet come as f64
constexpr int64_t kMaxFileNumber = std::numeric_limits<int32_t>::max();

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& got,
                       const std::string& expected) {
  throw DataError({.where = where,
                   .what = what,
                   .got = got,
                   .expected = expected,
                   .remedy = "Restore meta/episodes, or convert the dataset again."});
}

// Columns of one file; numbers are taken by name and row.
class RowFile {
 public:
  explicit RowFile(const fs::path& path) : where_(path.string()), reader_(path) {}

  int64_t num_rows() const { return reader_.num_rows(); }
  bool has(const std::string& name) const { return reader_.find_column(name) != nullptr; }
  std::string place(int64_t row) const { return where_ + ", row " + std::to_string(row); }

  // Values of a column, one a row.
  std::vector<double> numbers(const std::string& name) const {
    const HostTensor tensor = reader_.read_numbers(name);
    if (tensor.shape()[1] != 1) {
      fail(where_ + ": column " + quote(name), "not one number a row",
           std::to_string(tensor.shape()[1]), "1");
    }
    const auto values = tensor.as<double>();
    return {values.begin(), values.end()};
  }
  // Whole numbers from 0 to `most`; -1 in every row where there is no such column and none is
  // needed.
  std::vector<int64_t> integers(const std::string& name, bool is_needed, int64_t most) const {
    if (!is_needed && !has(name)) return std::vector<int64_t>(static_cast<size_t>(num_rows()), -1);
    const std::vector<double> values = numbers(name);
    std::vector<int64_t> result;
    result.reserve(values.size());
    for (const double value : values) {
      const bool fits =
          value >= 0 && value <= static_cast<double>(most) && value == std::floor(value);
      if (!fits) {
        fail(place(std::ssize(result)) + ", column " + quote(name), "number out of bounds",
             std::to_string(value), "a whole number from 0 to " + std::to_string(most));
      }
      result.push_back(static_cast<int64_t>(value));
    }
    return result;
  }
  std::vector<std::vector<std::string>> tasks() const {
    const ParquetColumnInfo* column = reader_.find_column("tasks");
    if (column == nullptr)
      return std::vector<std::vector<std::string>>(static_cast<size_t>(num_rows()));
    if (column->kind == ParquetKind::kTextList) return reader_.read_text_list("tasks");
    std::vector<std::vector<std::string>> lists;
    for (std::string& text : reader_.read_text("tasks")) lists.push_back({std::move(text)});
    return lists;
  }
  const ParquetReader& reader() const { return reader_; }

 private:
  std::string where_;
  ParquetReader reader_;
};

// One camera's columns.
struct VideoColumns {
  std::vector<int64_t> chunk, file;
  std::vector<double> from, to;
};

VideoColumns read_video_columns(const RowFile& rows, const std::string& camera) {
  const std::string prefix = "videos/" + camera + "/";
  VideoColumns columns;
  if (!rows.has(prefix + "chunk_index")) return columns;
  columns.chunk = rows.integers(prefix + "chunk_index", true, kMaxFileNumber);
  columns.file = rows.integers(prefix + "file_index", true, kMaxFileNumber);
  columns.from = rows.numbers(prefix + "from_timestamp");
  columns.to = rows.has(prefix + "to_timestamp") ? rows.numbers(prefix + "to_timestamp")
                                                 : std::vector<double>(columns.from.size());
  return columns;
}

V3Video video_of(const VideoColumns& columns, size_t row) {
  if (columns.chunk.empty()) return {};
  return {columns.chunk[row], columns.file[row], columns.from[row], columns.to[row]};
}

}  // namespace

std::vector<std::string> v3_cameras(const LerobotInfo& info) {
  std::vector<std::string> cameras;
  for (const Feature& feature : info.features) {
    if (feature.is_video()) cameras.push_back(feature.key);
  }
  return cameras;
}

std::vector<fs::path> v3_episode_files(const fs::path& root) {
  const fs::path folder = root / "meta" / "episodes";
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& chunk : fs::directory_iterator(folder, error)) {
    if (!chunk.is_directory(error)) continue;
    for (const auto& file : fs::directory_iterator(chunk.path(), error)) {
      // Writers that were killed leave temporary names behind.
      const std::string name = file.path().filename().string();
      if (name.starts_with("file-") && name.ends_with(".parquet")) files.push_back(file.path());
    }
  }
  if (files.empty()) {
    throw DataError(
        {.where = folder.string(),
         .what = "there is no list of episodes",
         .expected = "chunk-000/file-000.parquet",
         .remedy = "Restore meta/episodes; a recording that was not finalised has none."});
  }
  std::sort(files.begin(), files.end());
  return files;
}

void for_each_v3_row(const fs::path& file, const LerobotInfo& info,
                     const std::function<void(V3Row&, int64_t row)>& visit) {
  const RowFile rows(file);
  const auto most = static_cast<int64_t>(kMaxExact);
  const std::vector<int64_t> index = rows.integers("episode_index", true, kMaxLength);
  const std::vector<int64_t> length = rows.integers("length", true, kMaxLength);
  const std::vector<int64_t> data_chunk = rows.integers("data/chunk_index", true, kMaxFileNumber);
  const std::vector<int64_t> data_file = rows.integers("data/file_index", true, kMaxFileNumber);
  const std::vector<int64_t> from = rows.integers("dataset_from_index", false, most);
  const std::vector<int64_t> to = rows.integers("dataset_to_index", false, most);
  const std::vector<int64_t> meta_chunk =
      rows.integers("meta/episodes/chunk_index", false, kMaxFileNumber);
  const std::vector<int64_t> meta_file =
      rows.integers("meta/episodes/file_index", false, kMaxFileNumber);
  std::vector<std::vector<std::string>> tasks = rows.tasks();
  std::vector<VideoColumns> videos;
  for (const std::string& camera : v3_cameras(info)) {
    videos.push_back(read_video_columns(rows, camera));
  }
  for (size_t i = 0; i < index.size(); ++i) {
    V3Row row{.episode = {index[i], length[i], std::move(tasks[i])},
              .data_chunk = data_chunk[i],
              .data_file = data_file[i],
              .dataset_from = from[i],
              .dataset_to = to[i],
              .meta_chunk = meta_chunk[i],
              .meta_file = meta_file[i],
              .videos = {}};
    row.videos.reserve(videos.size());
    for (const VideoColumns& columns : videos) row.videos.push_back(video_of(columns, i));
    visit(row, static_cast<int64_t>(i));
  }
}

std::map<int64_t, std::string> read_v3_tasks(const fs::path& root) {
  const fs::path path = root / "meta" / "tasks.parquet";
  std::map<int64_t, std::string> tasks;
  if (!fs::exists(path)) return tasks;
  const RowFile rows(path);
  // pandas names an index without a name so.
  const char* column = rows.has("task") ? "task" : "__index_level_0__";
  const std::vector<std::string> texts = rows.reader().read_text(column);
  const std::vector<int64_t> indexes =
      rows.integers("task_index", true, static_cast<int64_t>(kMaxExact));
  for (size_t i = 0; i < indexes.size(); ++i) {
    if (tasks.emplace(indexes[i], texts[i]).second) continue;
    fail(rows.place(static_cast<int64_t>(i)), "task_index given twice", std::to_string(indexes[i]),
         "one row a task");
  }
  return tasks;
}

}  // namespace wam::data
