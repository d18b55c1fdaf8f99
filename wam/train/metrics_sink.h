// Where a run's numbers go: metrics.jsonl, one object a line, flushed line by line. Resuming at step
// n removes the lines of later steps, so that the file tells one story.
#pragma once

#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "wam/train/trainer.h"

namespace wam::train {

class MetricsSink {
 public:
  MetricsSink(const std::filesystem::path& run_dir, int64_t resumed_step);
  ~MetricsSink();
  MetricsSink(const MetricsSink&) = delete;
  MetricsSink& operator=(const MetricsSink&) = delete;

  void log_step(const StepMetrics& metrics);
  void log_validation(int64_t step, const StepMetrics& metrics);

 private:
  void write_line(const std::string& text);
  std::FILE* file_ = nullptr;
  std::filesystem::path path_;
};

// One line of metrics.jsonl: numbers by name; "nan" and "inf" read back as such.
using MetricsRow = std::map<std::string, double>;
// Rows in file order. A last line cut short by a crash is left out; any other damage is a DataError.
std::vector<MetricsRow> read_metrics(const std::filesystem::path& path);

}  // namespace wam::train
