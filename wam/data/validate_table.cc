#include "wam/data/validate_table.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/episode_table.h"
#include "wam/data/parquet_reader.h"

namespace wam::data {
namespace {

// A value further from q01..q99 than this many times their distance is far outside.
constexpr double kOutlierRanges = 5;

// LeRobot's dtype -> Arrow's name of the innermost type.
std::string arrow_type(const std::string& dtype) {
  if (dtype == "float32") return "float";
  if (dtype == "float64") return "double";
  if (dtype == "float16") return "halffloat";
  return dtype;
}

class TableCheck {
 public:
  TableCheck(const MetaView& meta, const Episode& episode, const ValidateOptions& options,
             FaultList& faults, ColumnSummaries& summaries)
      : meta_(meta),
        episode_(episode),
        options_(options),
        faults_(faults),
        summaries_(summaries),
        source_(meta.layout->table(episode)),
        path_(source_.path),
        important_(state_and_action_columns(meta.modality)) {}

  int64_t run() {
    if (!std::filesystem::exists(path_)) {
      add("table-missing", Severity::kError, -1, 1, "parquet file is missing",
          "Restore the file, or remove the episode from the meta.");
      return -1;
    }
    try {
      reader_.emplace(path_);
    } catch (const DataError& error) {
      faults_.add("table-unreadable", Severity::kError, error, path_, episode_.index);
      return -1;
    }
    check_rows();
    for (const Feature& feature : meta_.info->features) check_feature(feature);
    if (num_rows_ > 0) check_values();
    return num_rows_;
  }

 private:
  void add(const std::string& code, Severity severity, int64_t row, int64_t count,
           const std::string& what, const std::string& remedy) {
    faults_.add({.code = code,
                 .severity = severity,
                 .file = path_.string(),
                 .episode = episode_.index,
                 .row = row,
                 .count = count,
                 .what = what,
                 .remedy = remedy});
  }

  // The rows to look at: all of the file, or the episode's part of it.
  void check_rows() {
    const int64_t rows = reader_->num_rows();
    num_rows_ =
        source_.is_shared ? std::clamp<int64_t>(rows - source_.first, 0, episode_.length) : rows;
    // Of a file that episodes share, rows too many are said once.
    const bool is_short = rows < source_.first + episode_.length;
    if (rows == source_.total || !(is_short || source_.first == 0)) return;
    add("table-rows", Severity::kError, -1, 1,
        "table has " + std::to_string(rows) + " rows, " + meta_.episodes_file() + " says " +
            std::to_string(source_.total),
        std::string("Correct the length in ") + meta_.episodes_file() + ", or restore the file.");
  }

  void check_feature(const Feature& feature) {
    if (feature.is_video()) return;
    const ParquetColumnInfo* column = reader_->find_column(feature.key);
    if (column == nullptr) {
      const bool is_needed = important_.contains(feature.key) || feature.is_image();
      add("column-missing", is_needed ? Severity::kError : Severity::kWarning, -1, 1,
          "column " + quote(feature.key) + " of meta/info.json is not in the table",
          "Restore the file, or correct meta/info.json.");
      return;
    }
    if (feature.is_image()) return;  // looked at with the pictures
    if (column->kind != ParquetKind::kNumber && column->kind != ParquetKind::kText) {
      add("column-type", important_.contains(feature.key) ? Severity::kError : Severity::kWarning,
          -1, 1,
          "column " + quote(feature.key) + " is of type " + column->type +
              ", expected numbers or strings",
          "Convert the column.");
    } else if (column->value_type != arrow_type(feature.dtype)) {
      add("column-dtype", Severity::kWarning, -1, 1,
          "column " + quote(feature.key) + " holds " + column->value_type +
              ", meta/info.json says " + feature.dtype,
          "Correct meta/info.json.");
    }
  }

  void check_values() {
    if (source_.is_shared && !holds_own_rows()) return;
    for (const ParquetColumnInfo& column : reader_->columns()) {
      if (column.kind != ParquetKind::kNumber) continue;
      try {
        check_numbers(column.name, reader_->read_numbers(column.name, source_.first, num_rows_));
      } catch (const DataError& error) {
        faults_.add("column-unreadable", Severity::kError, error, path_, episode_.index);
      }
    }
  }

  void check_numbers(const std::string& column, const HostTensor& numbers) {
    const Feature* feature = meta_.info->find_feature(column);
    const int64_t width = numbers.shape()[1];
    if (feature != nullptr && numbers.shape()[0] > 0 && width != feature->width()) {
      add("column-width", Severity::kError, -1, 1,
          "column " + quote(column) + " has rows of " + std::to_string(width) +
              " numbers, meta/info.json says " + std::to_string(feature->width()),
          "Correct meta/info.json, or restore the file.");
      return;
    }
    const bool is_finite = check_finite(column, numbers);
    if (important_.contains(column)) summarise(column, numbers);
    if (width != 1 || !is_finite) return;
    const std::span<const double> values = numbers.as<double>();
    if (column == "timestamp") check_timestamps(values);
    if (column == "frame_index") check_count(values, column, 0, "frame-index", Severity::kError);
    if (column == "episode_index" && !source_.is_shared) check_episode_index(values);
    if (column == "index" && !values.empty()) {
      check_count(values, column, values[0], "index-gap", Severity::kWarning);
    }
    const bool names_tasks =
        column == "task_index" || (column.starts_with("annotation.") && feature != nullptr &&
                                   feature->dtype.starts_with("int"));
    if (names_tasks && !meta_.tasks.empty()) check_tasks(column, values);
  }

  bool check_finite(const std::string& column, const HostTensor& numbers) {
    const std::span<const double> values = numbers.as<double>();
    const int64_t place = find_non_finite(values);
    if (place < 0) return true;
    const int64_t width = numbers.shape()[1];
    const int64_t count = std::count_if(values.begin(), values.end(),
                                        [](double value) { return !std::isfinite(value); });
    add("value-nonfinite", important_.contains(column) ? Severity::kError : Severity::kWarning,
        place / width, count,
        "column " + quote(column) + " dim " + std::to_string(place % width) + " is " +
            std::to_string(values[static_cast<size_t>(place)]),
        "Repair the rows or leave the episode out.");
    return false;
  }

  // The column must count 1 by 1 from `first`.
  void check_count(std::span<const double> values, const std::string& column, double first,
                   const std::string& code, Severity severity) {
    for (size_t row = 0; row < values.size(); ++row) {
      const double expected = first + static_cast<double>(row);
      if (values[row] == expected) continue;
      add(code, severity, static_cast<int64_t>(row), 1,
          column + " is " + std::to_string(static_cast<int64_t>(values[row])) + ", expected " +
              std::to_string(static_cast<int64_t>(expected)),
          "Rows are missing, repeated or out of order: record or convert the episode again.");
      return;
    }
  }

  // Of a file that episodes share: rows of another episode say nothing about this one.
  bool holds_own_rows() {
    const std::string column = "episode_index";
    const ParquetColumnInfo* found = reader_->find_column(column);
    if (found == nullptr || found->kind != ParquetKind::kNumber) return true;  // reported
    try {
      const HostTensor keys = reader_->read_numbers(column, source_.first, num_rows_);
      return keys.shape()[1] != 1 || check_episode_index(keys.as<double>());
    } catch (const DataError&) {
      return true;  // reported with the column
    }
  }

  bool check_episode_index(std::span<const double> values) {
    const auto wrong = std::find_if(values.begin(), values.end(), [&](double value) {
      return value != static_cast<double>(episode_.index);
    });
    if (wrong == values.end()) return true;
    add("episode-index", Severity::kError, wrong - values.begin(), 1,
        "episode_index is " + std::to_string(static_cast<int64_t>(*wrong)) + ", expected " +
            std::to_string(episode_.index),
        source_.is_shared ? "Offsets or file indices of meta/episodes are stale: restore them, or "
                            "convert the dataset again."
                          : "The file belongs to another episode.");
    return false;
  }

  void check_tasks(const std::string& column, std::span<const double> values) {
    for (size_t row = 0; row < values.size(); ++row) {
      if (meta_.tasks.contains(static_cast<int64_t>(values[row]))) continue;
      add("task-missing", Severity::kError, static_cast<int64_t>(row), 1,
          quote(column) + " is " + std::to_string(static_cast<int64_t>(values[row])) + ", which " +
              meta_.tasks_file() + " does not list",
          std::string("Add the task to ") + meta_.tasks_file() + ".");
      return;
    }
  }

  void check_timestamps(std::span<const double> values) {
    int64_t back = -1, uneven = -1, num_uneven = 0;
    double worst = 0;
    for (size_t row = 0; row < values.size(); ++row) {
      if (row > 0 && values[row] <= values[row - 1] && back < 0) back = static_cast<int64_t>(row);
      const double regular = values[0] + static_cast<double>(row) / meta_.info->fps;
      const double distance = std::abs(values[row] - regular);
      worst = std::max(worst, distance);
      if (distance <= options_.timestamp_tolerance_s) continue;
      if (uneven < 0) uneven = static_cast<int64_t>(row);
      ++num_uneven;
    }
    if (back >= 0) {
      add("timestamp-order", Severity::kWarning, back, 1, "timestamps do not ascend",
          "Rows may be out of order; frames are taken by row, not by time.");
    }
    if (uneven >= 0) {
      add("timestamp-jitter", Severity::kWarning, uneven, num_uneven,
          "timestamps are up to " + std::to_string(worst) + " s from first + row / fps",
          "Frames are taken by row; check that the robot was recorded at " +
              std::to_string(meta_.info->fps) + " Hz.");
    }
    if (values.empty() || std::abs(values[0]) <= options_.timestamp_tolerance_s) return;
    add("timestamp-offset", Severity::kNote, 0, 1,
        "timestamps start at " + std::to_string(values[0]) + " s, expected 0",
        "Harmless: frames are taken by row.");
  }

  void summarise(const std::string& column, const HostTensor& numbers) {
    const int64_t width = numbers.shape()[1];
    std::vector<DimSummary>& dims = summaries_[column];
    dims.resize(static_cast<size_t>(width));
    const std::span<const double> values = numbers.as<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      const int64_t dim = static_cast<int64_t>(i) % width;
      dims[static_cast<size_t>(dim)].add(values[i]);
      if (!is_outlier(column, static_cast<size_t>(dim), values[i])) continue;
      DimSummary& summary = dims[static_cast<size_t>(dim)];
      if (summary.outliers++ > 0) continue;
      summary.first_outlier_episode = episode_.index;
      summary.first_outlier_row = static_cast<int64_t>(i) / width;
      summary.first_outlier = values[i];
      summary.first_outlier_file = path_.string();
    }
    check_episode_stats(column, dims, numbers);
  }

  bool is_outlier(const std::string& column, size_t dim, double value) const {
    const auto stats = meta_.stats.find(column);
    if (stats == meta_.stats.end()) return false;
    const auto low = stats->second.find("q01"), high = stats->second.find("q99");
    if (low == stats->second.end() || high == stats->second.end()) return false;
    if (dim >= low->second.size() || dim >= high->second.size()) return false;
    const double margin = kOutlierRanges * (high->second[dim] - low->second[dim]);
    return margin > 0 && (value < low->second[dim] - margin || value > high->second[dim] + margin);
  }

  // Extremes of this episode against its line of episodes_stats.jsonl.
  void check_episode_stats(const std::string& column, const std::vector<DimSummary>& dims,
                           const HostTensor& numbers) {
    const auto episode = meta_.episode_stats.find(episode_.index);
    if (episode == meta_.episode_stats.end()) return;
    const auto stats = episode->second.find(column);
    if (stats == episode->second.end() || numbers.shape()[0] == 0) return;
    const auto min = stats->second.find("min"), max = stats->second.find("max");
    if (min == stats->second.end() || max == stats->second.end()) return;
    if (min->second.size() != dims.size() || max->second.size() != dims.size()) {
      add("stats-width", Severity::kError, -1, 1,
          quote(column) + " has " + std::to_string(min->second.size()) +
              " values in episodes_stats.jsonl, expected " + std::to_string(dims.size()),
          "Compute statistics again.");
      return;
    }
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      double low = dims[dim].min, high = dims[dim].max;
      const double slack = 1e-4 * (high - low) + 1e-6 * std::max(std::abs(low), std::abs(high));
      if (std::abs(low - min->second[dim]) <= slack && std::abs(high - max->second[dim]) <= slack) {
        continue;
      }
      add("stats-mismatch", Severity::kWarning, -1, 1,
          quote(column) + " dim " + std::to_string(dim) + " spans " + std::to_string(low) + " to " +
              std::to_string(high) + ", episodes_stats.jsonl says " +
              std::to_string(min->second[dim]) + " to " + std::to_string(max->second[dim]),
          "The statistics belong to other data: compute them again.");
      return;
    }
  }

  const MetaView& meta_;
  const Episode& episode_;
  const ValidateOptions& options_;
  FaultList& faults_;
  ColumnSummaries& summaries_;
  FrameSource source_;
  std::filesystem::path path_;
  std::set<std::string> important_;
  int64_t num_rows_ = 0;
  std::optional<ParquetReader> reader_;
};

void insert_distinct(std::vector<double>& distinct, double value) {
  if (distinct.size() >= kMaxDistinct) return;
  const auto place = std::lower_bound(distinct.begin(), distinct.end(), value);
  if (place == distinct.end() || *place != value) distinct.insert(place, value);
}

}  // namespace

void DimSummary::add(double value) {
  insert_distinct(distinct, value);
  if (count == 0 || value < min) min = value, at_min = 0;
  if (count == 0 || value > max) max = value, at_max = 0;
  at_min += value == min ? 1 : 0;
  at_max += value == max ? 1 : 0;
  mean += (value - mean) / static_cast<double>(++count);
}

void DimSummary::merge(const DimSummary& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  for (const double value : other.distinct) insert_distinct(distinct, value);
  if (other.min <= min) at_min = other.at_min + (other.min == min ? at_min : 0), min = other.min;
  if (other.max >= max) at_max = other.at_max + (other.max == max ? at_max : 0), max = other.max;
  count += other.count;
  mean += (other.mean - mean) * static_cast<double>(other.count) / static_cast<double>(count);
  if (outliers == 0) {
    first_outlier_episode = other.first_outlier_episode;
    first_outlier_row = other.first_outlier_row;
    first_outlier = other.first_outlier;
    first_outlier_file = other.first_outlier_file;
  }
  outliers += other.outliers;
}

int64_t validate_table(const MetaView& meta, const Episode& episode, const ValidateOptions& options,
                       FaultList& faults, ColumnSummaries& summaries) {
  return TableCheck(meta, episode, options, faults, summaries).run();
}

}  // namespace wam::data
