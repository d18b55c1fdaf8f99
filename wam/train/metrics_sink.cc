#include "wam/train/metrics_sink.h"

namespace wam::train {
namespace {

// With "loss/NAME" and so on for each dataset of a mixture that had samples.
std::vector<TaggedScalar> losses(const StepMetrics& m, const std::vector<std::string>& names) {
  std::vector<TaggedScalar> scalars = {
      {"loss", m.loss}, {"dynamics_loss", m.dynamics_loss}, {"action_loss", m.action_loss}};
  for (size_t i = 0; i < m.sources.size(); ++i) {
    const SourceLoss& source = m.sources[i];
    if (source.samples == 0) continue;
    const std::string& name = names.at(i);
    scalars.insert(scalars.end(), {{"loss/" + name, source.dynamics_loss + source.action_loss},
                                   {"dynamics_loss/" + name, source.dynamics_loss},
                                   {"action_loss/" + name, source.action_loss},
                                   {"samples/" + name, static_cast<double>(source.samples)}});
  }
  return scalars;
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

MetricsSink::MetricsSink(const std::filesystem::path& run_dir, int64_t resumed_step,
                         std::vector<std::string> source_names)
    : log_(run_dir / "metrics.jsonl", resumed_step),
      events_(run_dir / "tensorboard", resumed_step + 1),
      source_names_(std::move(source_names)) {}

void MetricsSink::log_step(const StepMetrics& m) {
  std::vector<TaggedScalar> scalars = losses(m, source_names_);
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

void MetricsSink::log_event(int64_t step, const std::string& name, const std::string& text) {
  log_.write({.step = step, .fields = {{"kind", std::string("event")}, {"event", name}, {"text", text}}});
}

void MetricsSink::log_validation(int64_t step, const StepMetrics& m) {
  log_.write(record_of(step, "validation", losses(m, source_names_)));
  events_.add_scalars(step, with_prefix("validation/", losses(m, source_names_)));
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
