#include "wam/train/metrics_sink.h"

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "wam/base/error.h"
#include "wam/base/files.h"

namespace wam::train {
namespace {

using nlohmann::json;

// JSON has no NaN: non-finite numbers are text.
json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : (value > 0 ? "inf" : "-inf");
}

double from_json(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text == "inf") return INFINITY;
  if (text == "-inf") return -INFINITY;
  return NAN;
}

json losses(const StepMetrics& m) {
  return {{"loss", number(m.loss)},
          {"dynamics_loss", number(m.dynamics_loss)},
          {"action_loss", number(m.action_loss)}};
}

void keep_until(const std::filesystem::path& path, int64_t step) {
  if (!std::filesystem::exists(path)) return;
  std::istringstream lines(read_text_file(path));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const json j = json::parse(line, nullptr, false);
    if (j.is_discarded() || !j.contains("step") || j["step"].get<int64_t>() > step) continue;
    kept += line + "\n";
  }
  write_file_atomic(path, kept);
}

}  // namespace

MetricsSink::MetricsSink(const std::filesystem::path& run_dir, int64_t resumed_step)
    : path_(run_dir / "metrics.jsonl") {
  keep_until(path_, resumed_step);
  file_ = std::fopen(path_.c_str(), "ae");
  if (file_ == nullptr) throw_io_error(path_, "cannot open", errno);
}

MetricsSink::~MetricsSink() {
  if (file_ != nullptr) std::fclose(file_);
}

void MetricsSink::write_line(const std::string& text) {
  if (std::fputs((text + "\n").c_str(), file_) < 0 || std::fflush(file_) != 0) {
    throw_io_error(path_, "cannot write", errno);
  }
}

void MetricsSink::log_step(const StepMetrics& m) {
  json j = losses(m);
  j["step"] = m.step;
  j["kind"] = "train";
  j["grad_norm"] = number(m.grad_norm);
  j["lr"] = m.lr;
  j["samples_per_second"] = number(m.samples_per_second);
  j["wait_share"] = number(m.wait_share);
  j["skipped"] = m.skipped ? 1 : 0;
  write_line(j.dump());
}

void MetricsSink::log_validation(int64_t step, const StepMetrics& m) {
  json j = losses(m);
  j["step"] = step;
  j["kind"] = "validation";
  write_line(j.dump());
}

std::vector<MetricsRow> read_metrics(const std::filesystem::path& path) {
  std::istringstream lines(read_text_file(path));
  std::vector<MetricsRow> rows;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const json j = json::parse(line, nullptr, false);
    if (!j.is_object()) {
      if (lines.peek() == EOF) break;
      throw DataError({.where = path.string() + ", line " + std::to_string(number),
                       .what = "is not a JSON object"});
    }
    MetricsRow row;
    for (const auto& [key, value] : j.items()) {
      if (key == "kind") {
        row["validation"] = value == "validation" ? 1 : 0;
      } else {
        row[key] = from_json(value);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace wam::train
