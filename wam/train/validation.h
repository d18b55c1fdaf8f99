// The loss on held-out episodes with fixed windows, noise and timesteps: comparable from step to
// step and from run to run.
#pragma once

#include "wam/train/session.h"
#include "wam/train/step_inputs.h"
#include "wam/train/trainer.h"

namespace wam::train {

class Validation {
 public:
  // Loads and encodes config.validation_samples windows (rounded up to whole micro-batches) once and
  // keeps them in host memory. The session must outlive this.
  explicit Validation(Session& session);
  // Means over the samples; only the loss fields are set.
  StepMetrics run();

 private:
  Session& session_;
  std::unique_ptr<Executor> executor_;
  std::vector<StepInputs> batches_;
};

}  // namespace wam::train
