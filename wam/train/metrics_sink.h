// Where a run's numbers go: metrics.jsonl and TensorBoard scalars. Resuming at step n removes the
// lines of later steps, so that the file tells one story.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wam/train/metrics_log.h"
#include "wam/train/tfevents.h"
#include "wam/train/trainer.h"

namespace wam::train {

class MetricsSink {
 public:
  // `source_names`: of the datasets whose losses a StepMetrics gives apart.
  MetricsSink(const std::filesystem::path& run_dir, int64_t resumed_step,
              std::vector<std::string> source_names = {});
  void log_step(const StepMetrics& metrics);
  // Something that happened: a record of kind "event" with its name and a text.
  void log_event(int64_t step, const std::string& name, const std::string& text);
  void log_validation(int64_t step, const StepMetrics& metrics);

 private:
  MetricsLog log_;
  TfEventsWriter events_;
  std::vector<std::string> source_names_;
};

// A curve of metrics.jsonl: the values of `key` in records of `kind` ("train", "validation").
struct Curve {
  std::vector<double> steps, values;
};
Curve read_curve(const std::filesystem::path& run_dir, const std::string& kind, const std::string& key);

}  // namespace wam::train
