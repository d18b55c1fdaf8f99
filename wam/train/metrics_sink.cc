#include "wam/train/metrics_sink.h"

namespace wam::train {
namespace {

std::vector<TaggedScalar> losses(const StepMetrics& m) {
  return {{"loss", m.loss}, {"dynamics_loss", m.dynamics_loss}, {"action_loss", m.action_loss}};
}

MetricsRecord record_of(int64_t step, const std::string& kind, const std::vector<TaggedScalar>& scalars) {
  MetricsRecord record{.step = step, .fields = {{"kind", kind}}};
  for (const auto& [name, value] : scalars) record.fields.emplace_back(name, value);
  return record;
}

std::vector<TaggedScalar> with_prefix(const std::string& prefix, std::vector<TaggedScalar> scalars) {
  for (auto& [name, value] : scalars) name = prefix + name;
  return scalars;
}

}  // namespace

MetricsSink::MetricsSink(const std::filesystem::path& run_dir, int64_t resumed_step)
    : log_(run_dir / "metrics.jsonl", resumed_step),
      events_(run_dir / "tensorboard", resumed_step + 1) {}

void MetricsSink::log_step(const StepMetrics& m) {
  std::vector<TaggedScalar> scalars = losses(m);
  scalars.insert(scalars.end(), {{"grad_norm", m.grad_norm},
                                 {"lr", m.lr},
                                 {"samples_per_second", m.samples_per_second},
                                 {"wait_share", m.wait_share},
                                 {"skipped", m.skipped ? 1.0 : 0.0}});
  if (m.slowest_rank >= 0) {
    scalars.insert(scalars.end(), {{"slowest_rank", static_cast<double>(m.slowest_rank)},
                                   {"slowest_seconds", m.slowest_seconds},
                                   {"collective_share", m.collective_share}});
  }
  MetricsRecord record = record_of(m.step, "train", scalars);
  if (!m.samples.empty()) record.fields.emplace_back("samples", m.samples);
  log_.write(record);
  events_.add_scalars(m.step, with_prefix("train/", scalars));
}

void MetricsSink::log_validation(int64_t step, const StepMetrics& m) {
  log_.write(record_of(step, "validation", losses(m)));
  events_.add_scalars(step, with_prefix("validation/", losses(m)));
}

Curve read_curve(const std::filesystem::path& run_dir, const std::string& kind, const std::string& key) {
  Curve curve;
  for (const MetricsRecord& record : read_metrics_log(run_dir / "metrics.jsonl")) {
    const auto value = record.number(key);
    if (record.text("kind") != kind || !value) continue;
    curve.steps.push_back(static_cast<double>(record.step));
    curve.values.push_back(*value);
  }
  return curve;
}

}  // namespace wam::train
