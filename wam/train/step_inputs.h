// A micro-batch into the step program's inputs: noise, timesteps and masks are drawn here, as pure
// functions of (seed, step, sample).
#pragma once

#include "wam/data/types.h"
#include "wam/train/config.h"
#include "wam/train/encoders.h"

namespace wam::train {

// Whose draws: sample i of the micro-batch is number first_index + i of the global batch of `step`.
struct DrawPlace {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t first_index = 0;
};

// Everything the step or validation program reads, ready to be written (and kept: validation).
struct StepInputs {
  std::vector<std::pair<std::string, HostTensor>> values;
  void write_to(Executor& executor) const;
};

// Pictures' results that `encoded` lacks are left out: they are in the step's inputs already. Uses
// the config's noise option, and what it withholds.
StepInputs make_step_inputs(const TrainConfig& config, const DitConfig& model, const data::Batch& batch,
                            const Encoded& encoded, const DrawPlace& place);

}  // namespace wam::train
