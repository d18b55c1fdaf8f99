// The loss on held-out episodes with fixed windows, noise and timesteps: comparable from step to
// step and from run to run.
#pragma once

#include "wam/train/ranks.h"
#include "wam/train/session.h"
#include "wam/train/step_inputs.h"
#include "wam/train/trainer.h"

namespace wam::train {

class Validation {
 public:
  // Loads and encodes config.validation_samples windows (rounded up to whole micro-batches) once and
  // keeps them in host memory, each rank its share. Session and ranks must outlive this.
  Validation(Session& session, const Ranks& ranks);
  // Means over the samples, the same bits on every rank and for any number of ranks; only the losses
  // are set. All ranks call it together.
  StepMetrics run();

 private:
  // Micro-batches [first, end) of `rank`, out of all.
  struct Share {
    int64_t first, end;
  };
  Share share_of(int rank) const;
  void load(const Share& own);
  // Three losses of a batch, and of a mixture those of its samples (source_losses.h).
  std::vector<double> losses(size_t batch);
  bool is_mixture() const { return session_.data.sources.size() > 1; }

  Session& session_;
  const Ranks& ranks_;
  std::unique_ptr<Executor> executor_;
  int64_t num_batches_, rounds_;     // of all ranks together; that each of them runs
  std::vector<StepInputs> batches_;  // this rank's, at least one
  std::vector<std::vector<data::SampleId>> ids_;  // of each batch
};

}  // namespace wam::train
