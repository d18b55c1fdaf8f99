#include "wam/train/fit.h"

#include <fmt/format.h>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/plan/memory_plan.h"

namespace wam::train {
namespace {

int64_t total_bytes(const StepPrograms& step, std::span<const Program* const> others) {
  std::vector<const Program*> all = step.all();
  all.insert(all.end(), others.begin(), others.end());
  return combine(all).total_bytes();
}

StepOptions with_policy(StepOptions options, RecomputePolicy policy) {
  options.recompute.policy = policy;
  return options;
}

bool fits(const StepOptions& options, const Target& target, const MemoryLimit& limit,
          std::span<const Program* const> others) {
  return total_bytes(build_step(options, target), others) <= limit.bytes;
}

std::string describe(const StepOptions& o) {
  std::string text = fmt::format("micro_batch_size: {}", o.shape.batch);
  if (o.recompute.policy == RecomputePolicy::kFull) text += " with recompute: full";
  if (o.gradient_dtype == DType::kBF16) text += " with gradient_dtype: bf16";
  return text;
}

// The largest micro-batch that fits with everything computed again, and the largest without.
std::string what_fits(StepOptions options, const Target& target, const MemoryLimit& limit,
                      std::span<const Program* const> others) {
  const int64_t samples = options.shape.batch * options.accumulate;
  std::vector<std::string> found;
  for (int64_t batch = options.shape.batch; batch >= 1; --batch) {
    if (samples % batch != 0) continue;
    options.shape.batch = batch;
    options.accumulate = samples / batch;
    const StepOptions full = with_policy(options, RecomputePolicy::kFull);
    const StepOptions none = with_policy(options, RecomputePolicy::kNone);
    if (found.empty() && fits(full, target, limit, others)) found.push_back(describe(full));
    if (found.empty() || !fits(none, target, limit, others)) continue;
    found.push_back(describe(none));
    break;
  }
  if (!found.empty()) return "These would fit: " + join(found, "; ") + ".";
  if (options.dtype == DType::kBF16 && options.gradient_dtype == DType::kF32) {
    options.gradient_dtype = DType::kBF16;
    options.recompute.policy = RecomputePolicy::kFull;
    if (fits(options, target, limit, others)) return "This would fit: " + describe(options) + ".";
  }
  return "The weights, their moments and gradients alone are too large: choose a smaller model" +
         std::string(options.dtype == DType::kF32 ? ", or dtype: bf16." : ".");
}

}  // namespace

MemoryLimit limit_of(const Device& device, bool is_gpu) {
  constexpr int64_t kOwn = int64_t{2} << 30;  // what a context takes of a card, generously
  const int64_t held = device.total_bytes() - device.free_bytes();
  MemoryLimit limit{device.free_bytes() - (is_gpu ? kDeviceReserve : 0), device.name()};
  if (is_gpu && held > kOwn)
    limit.where += ", " + format_bytes(held) + " of it held by other processes";
  return limit;
}

bool fits_device(const RecomputeOptions& options) {
  return options.policy == RecomputePolicy::kBudget && options.budget_bytes == 0;
}

void check_fits(const StepOptions& options, const StepPrograms& programs, const Target& target,
                const MemoryLimit& limit, std::span<const Program* const> others) {
  const int64_t total = total_bytes(programs, others);
  if (total <= limit.bytes) return;
  throw PlanError({.where = limit.where,
                   .what = "the run does not fit into the device's free memory",
                   .got = format_bytes(total),
                   .expected = "at most " + format_bytes(limit.bytes),
                   .remedy = what_fits(options, target, limit, others)});
}

// What is kept for the backward half is not all that the arena holds, so the budget is searched
// for: halving, with the bytes too many as the first guess.
StepPrograms build_fitting_step(const StepOptions& options, const Target& target,
                                const MemoryLimit& limit, std::span<const Program* const> others) {
  constexpr int kTries = 7;
  StepPrograms best = build_step(with_policy(options, RecomputePolicy::kNone), target);
  const int64_t over = total_bytes(best, others) - limit.bytes;
  if (over <= 0) return best;
  int64_t low = 0, high = best.recompute.kept_bytes_before;
  best = build_step(with_policy(options, RecomputePolicy::kFull), target);
  check_fits(options, best, target, limit, others);
  StepOptions cut = options;
  cut.recompute.budget_bytes = std::max<int64_t>(1, high - over);
  for (int i = 0; i < kTries; ++i, cut.recompute.budget_bytes = low + (high - low) / 2) {
    try {
      StepPrograms step = build_step(cut, target);
      if (total_bytes(step, others) <= limit.bytes) {
        low = cut.recompute.budget_bytes;
        best = std::move(step);
        continue;
      }
      high = cut.recompute.budget_bytes;
    } catch (const PlanError&) {
      low = cut.recompute.budget_bytes;
    }
  }
  return best;
}

}  // namespace wam::train
