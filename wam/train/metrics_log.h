// metrics.jsonl: one JSON object a line, written as it happens. Numbers that JSON has no form for
// are the texts "nan", "inf" and "-inf", so that the file stays valid.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace wam::train {

using MetricValue = std::variant<bool, int64_t, double, std::string>;

struct MetricsRecord {
  int64_t step = 0;
  std::vector<std::pair<std::string, MetricValue>> fields;  // in order, without "step"

  // The number under `key` (an integer or boolean as a double); nothing if absent or text.
  std::optional<double> number(const std::string& key) const;
  // The text under `key`; nothing if absent or a number.
  std::optional<std::string> text(const std::string& key) const;
};

// Appends records. Each line is handed to the system with one write, so that a killed process
// leaves at most its last line unfinished. Failures are DataError. Not thread-safe.
class MetricsLog {
 public:
  // A fresh run: the file must be absent or empty, else DataError. A run resumed at `resumed_step`:
  // lines of later steps and an unfinished last line are removed first; any other line that is no
  // record is a DataError with its number.
  explicit MetricsLog(std::filesystem::path path, std::optional<int64_t> resumed_step = {});
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  void write(const MetricsRecord& record);

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Without a newline at the end. Text must be UTF-8; "step" comes first.
std::string metrics_line(const MetricsRecord& record);

// All records in order. An unfinished last line (a run at work, or one that was killed) is left
// out; any other line that is no record is a DataError with its number.
std::vector<MetricsRecord> read_metrics_log(const std::filesystem::path& path);

}  // namespace wam::train
