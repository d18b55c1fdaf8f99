#include "wam/train/micro_batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/train/run_plan.h"

namespace wam::train {
namespace {

std::vector<int64_t> sizes_of(const TrainConfig& config) {
  const int64_t most = config.global_batch_size / config.ranks;
  std::vector<int64_t> sizes = {config.micro_batch_size};
  for (int64_t size = 1; size <= most; size *= 2) {
    if (most % size == 0) sizes.push_back(size);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

MicroBatchChoice plan_size(TrainConfig config, int64_t size, const Card& card) {
  config.micro_batch_size = size;
  MicroBatchChoice choice{.micro_batch = size, .samples = config.global_batch_size / config.ranks};
  try {
    const RunPlan plan =
        plan_run(config, {.limit = MemoryLimit{card.free_bytes - kDeviceReserve, card.name}});
    const StepPrograms& step = plan.step;
    const auto added = static_cast<double>(config.accumulate() - 1);
    double flops = step.optimizer.cost.flops;
    choice.step_seconds = predict_seconds(step.optimizer, card.rates);
    for (int64_t i = 0; i < config.accumulate(); ++i) {
      const Program& program = step.micro_batch(i, config.accumulate());
      flops += program.cost.flops;
      choice.step_seconds += predict_seconds(program, card.rates);
    }
    choice.planned_bytes = plan.memory.total_bytes();
    choice.recomputed_share = step.recompute.recomputed_flops * (1 + added) / flops;
    if (!plan.encoders_apart) {
      const int64_t groups = (size + config.vae.sub_batch - 1) / config.vae.sub_batch;
      choice.encoder_seconds = static_cast<double>(groups * config.accumulate()) *
                               predict_seconds(plan.encoders.pictures, card.rates);
    }
  } catch (const PlanError& error) {
    choice.refusal = "does not fit: " + error.info().got;
  }
  return choice;
}

}  // namespace

std::vector<MicroBatchChoice> compare_micro_batches(const TrainConfig& config, const Card& card) {
  std::vector<MicroBatchChoice> choices;
  for (const int64_t size : sizes_of(config)) choices.push_back(plan_size(config, size, card));
  return choices;
}

std::string describe(const std::vector<MicroBatchChoice>& choices, const Card& card) {
  std::string text = fmt::format(
      "predicted for {}, {} samples a step\n{:>11} {:>10} {:>10} {:>9} {:>12} {:>11}\n", card.name,
      choices.front().samples, "micro-batch", "memory", "again", "step", "pictures", "samples/s");
  const MicroBatchChoice* best = nullptr;
  for (const MicroBatchChoice& c : choices) {
    if (!c.refusal.empty()) {
      text += fmt::format("{:>11} {}\n", c.micro_batch, c.refusal);
      continue;
    }
    text += fmt::format("{:>11} {:>10} {:>8.1f} % {:>6.0f} ms {:>9.0f} ms {:>11.2f}\n", c.micro_batch,
                        format_bytes(c.planned_bytes), 100 * c.recomputed_share, 1e3 * c.step_seconds,
                        1e3 * c.encoder_seconds, c.samples_per_second());
    if (best == nullptr || c.samples_per_second() > best->samples_per_second()) best = &c;
  }
  if (best == nullptr) return text + "none fits\n";
  return text + fmt::format("best: micro_batch_size: {}\n", best->micro_batch);
}

}  // namespace wam::train
