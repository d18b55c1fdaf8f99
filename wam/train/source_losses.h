// Losses of a mixture's datasets, from those of the samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wam/data/types.h"
#include "wam/train/trainer.h"

namespace wam::train {

// A micro-batch as numbers that ranks can exchange: source, dynamics_loss and action_loss of each
// sample in turn. `losses` are DitTrain::sample_losses; `part_sources` gives the source of a sample
// id's dataset (empty: the same).
std::vector<double> sample_records(std::span<const data::SampleId> ids, std::span<const float> losses,
                                   std::span<const int64_t> part_sources = {});

// Adds records up, in their order, so that the sums do not depend on how ranks share a batch.
class SourceSums {
 public:
  explicit SourceSums(size_t num_sources) : sums_(num_sources) {}
  void add(std::span<const double> records);
  std::vector<SourceLoss> means() const;

 private:
  std::vector<SourceLoss> sums_;
};

}  // namespace wam::train
