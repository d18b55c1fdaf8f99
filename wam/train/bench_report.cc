#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "wam/base/strings.h"
#include "wam/train/bench.h"

namespace wam::train {
namespace {

std::string memory_lines(const StepBench& b) {
  std::string text =
      fmt::format("memory planned {:.3f} GB", 1e-9 * static_cast<double>(b.planned_bytes));
  if (b.seen_bytes > 0) {
    text += fmt::format(
        ", seen {:.3f} GB ({:+.2f} %)", 1e-9 * static_cast<double>(b.seen_bytes),
        100 * (static_cast<double>(b.seen_bytes) / static_cast<double>(b.planned_bytes) - 1));
  }
  text += "\n";
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : b.by_category) {
    if (bytes > 0) parts.push_back(name + " " + format_bytes(bytes));
  }
  text += "  " + join(parts, ", ") + "\n";
  if (b.arena_touched > 0) {
    text += fmt::format("  arena planned {}, touched {}\n", format_bytes(b.arena_planned),
                        format_bytes(b.arena_touched));
  }
  return text;
}

std::string op_table(const StepBench& b) {
  std::string text =
      fmt::format("each kernel on its own: {:.2f} ms in all, outside kernels {:.2f} %\n",
                  1e3 * b.kernel_seconds, 100 * (1 - b.kernel_seconds / b.profiled_seconds));
  text += fmt::format("{:<24} {:>8} {:>10} {:>8} {:>10} {:>10}\n", "op", "calls", "ms", "%",
                      "GFLOP/s", "GB/s");
  for (const OpTime& op : b.ops) {
    text += fmt::format("{:<24} {:>8} {:>10.3f} {:>8.1f} {:>10.1f} {:>10.1f}\n", op.op, op.calls,
                        1e3 * op.seconds, 100 * op.seconds / b.kernel_seconds,
                        1e-9 * op.flops / op.seconds, 1e-9 * op.bytes / op.seconds);
  }
  return text;
}

// Of a template's name, what tells its instances apart begins early.
std::string short_name(const std::string& name) {
  constexpr size_t kMost = 100;
  std::string text = name;
  for (const std::string_view noise :
       {"void ", "(anonymous namespace)::", "wam::cuda::", "__nv_bfloat16"}) {
    for (size_t at = text.find(noise); at != std::string::npos; at = text.find(noise)) {
      text.replace(at, noise.size(), noise == "__nv_bfloat16" ? "bf16" : "");
    }
  }
  return text.substr(0, kMost);
}

std::string traced_table(const StepBench& b) {
  constexpr size_t kMost = 30;
  std::string text = fmt::format(
      "one captured step under CUPTI: kernels {:.2f} ms of {:.2f} ms without it: no kernel in "
      "{:.2f} % of the step "
      "(with it {:.2f} ms, {:.2f} %)\n",
      1e3 * b.traced_busy_seconds, 1e3 * b.seconds, 100 * b.idle_share(), 1e3 * b.traced_seconds,
      100 * (1 - b.traced_busy_seconds / b.traced_seconds));
  text += fmt::format("{:>8} {:>10} {:>7}  {}\n", "launches", "ms", "%", "kernel");
  for (size_t i = 0; i < std::min(kMost, b.traced.size()); ++i) {
    const TracedKernel& k = b.traced[i];
    text += fmt::format("{:>8} {:>10.3f} {:>7.2f}  {}\n", k.launches, 1e3 * k.seconds,
                        100 * k.seconds / b.traced_busy_seconds, short_name(k.name));
  }
  return text;
}

}  // namespace

std::string describe(const StepBench& b) {
  std::string text = b.device + "\n";
  if (b.seconds > 0) {
    const double rate = b.flops / b.seconds;
    text += fmt::format("{:.2f} samples/s, {:.2f} ms a step of {} samples, {} at a time",
                        static_cast<double>(b.samples) / b.seconds, 1e3 * b.seconds, b.samples,
                        b.micro_batch);
    if (b.ranks > 1) {
      text += fmt::format(", {} ranks, {:.2f} samples/s each", b.ranks,
                          static_cast<double>(b.samples) / b.seconds / static_cast<double>(b.ranks));
    }
    if (b.optimizer_seconds > 0)
      text += fmt::format(", {:.2f} ms of it the optimizer", 1e3 * b.optimizer_seconds);
    text += fmt::format("\n{:.2f} TFLOP/s", 1e-12 * rate);
    if (b.device.starts_with("cuda")) {
      text += fmt::format(", {:.1f} % of a large product's {:.0f}", 100 * rate / kGemmCeiling,
                          1e-12 * kGemmCeiling);
    }
    text += fmt::format("; loss {:.6g}\n", b.loss);
  }
  text += fmt::format("{:.4g} FLOPs, {:.4g} of them computed again", b.flops, b.recomputed_flops);
  if (b.frozen_flops > 0) text += fmt::format("; the encoders' {:.4g} beside them", b.frozen_flops);
  text += "\n";
  text += memory_lines(b);
  if (!b.recomputed.empty()) text += "computed again: " + join(b.recomputed, ", ") + "\n";
  if (!b.ops.empty()) text += op_table(b);
  return b.traced.empty() ? text : text + traced_table(b);
}

std::string to_json(const StepBench& b) {
  nlohmann::json ops = nlohmann::json::array();
  for (const OpTime& op : b.ops) {
    ops.push_back({{"op", op.op},
                   {"calls", op.calls},
                   {"seconds", op.seconds},
                   {"flops", op.flops},
                   {"bytes", op.bytes}});
  }
  const nlohmann::json j = {
      {"device", b.device},
      {"samples", b.samples},
      {"ranks", b.ranks},
      {"micro_batch_size", b.micro_batch},
      {"samples_per_second", b.seconds > 0 ? static_cast<double>(b.samples) / b.seconds : 0},
      {"step_seconds", b.seconds},
      {"optimizer_seconds", b.optimizer_seconds},
      {"flops", b.flops},
      {"recomputed_flops", b.recomputed_flops},
      {"loss", b.loss},
      {"planned_bytes", b.planned_bytes},
      {"planned_by_category", b.by_category},
      {"seen_bytes", b.seen_bytes},
      {"arena_planned_bytes", b.arena_planned},
      {"arena_touched_bytes", b.arena_touched},
      {"kernel_seconds", b.kernel_seconds},
      {"profiled_seconds", b.profiled_seconds},
      {"frozen_flops", b.frozen_flops},
      {"traced_seconds", b.traced_seconds},
      {"traced_busy_seconds", b.traced_busy_seconds},
      {"idle_share", b.traced.empty() ? 0 : b.idle_share()},
      {"ops", ops}};
  return j.dump(2) + "\n";
}

}  // namespace wam::train
