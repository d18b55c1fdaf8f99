// The same optimizer step in micro-batches of different sizes on one card: memory, what is computed
// again, and predicted time. Needs no device.
#pragma once

#include <vector>

#include "wam/train/config.h"
#include "wam/train/cost_model.h"

namespace wam::train {

struct MicroBatchChoice {
  int64_t micro_batch = 0;
  std::string refusal;            // why it does not fit; the rest is then empty
  int64_t planned_bytes = 0;
  double recomputed_share = 0;    // of the step's FLOPs
  double step_seconds = 0;        // all micro-batches and the optimizer
  double encoder_seconds = 0;     // pictures of all samples, on the same card
  int64_t samples = 0;            // of an optimizer step
  double samples_per_second() const {
    return static_cast<double>(samples) / (step_seconds + encoder_seconds);
  }
};

// Sizes 1, 2, 4, ... that divide the config's global batch, and the config's own. `recompute: auto`
// keeps for each what the card's memory allows; another policy stays as it is.
std::vector<MicroBatchChoice> compare_micro_batches(const TrainConfig& config, const Card& card);
// The table, and the best in words.
std::string describe(const std::vector<MicroBatchChoice>& choices, const Card& card);

}  // namespace wam::train
