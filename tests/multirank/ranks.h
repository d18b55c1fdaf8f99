// A small model trained on random inputs by any number of ranks, as threads of this process.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "wam/dist/groups.h"
#include "wam/train/state_access.h"
#include "wam/train/step.h"

namespace wam::multirank {

train::StepOptions small_step(DType dtype = DType::kF32);

struct RunOptions {
  train::StepOptions step;  // accumulate: of one rank
  int world = 1, shard_size = 1;
  int64_t steps = 20;
  bool reverse = false;  // a rank's micro-batches in the opposite order: another order of addition
  bool poison = false;
  std::string device = "cpu";  // cuda: all ranks on one GPU, their collectives through host memory
  ExecMode exec = ExecMode::kGraph;
  bool nccl = false;  // a world of one with a communicator of the GPU
  bool cut_at_collectives = false;
  double lr = 1e-3;
};

struct Result {
  std::vector<double> losses;  // of the global batch, summed in its order
  std::vector<double> grad_norms;
  double collective_seconds = 0;  // of all steps
  int64_t planned_bytes = 0, received_bytes = 0;  // of a rank, by collectives of all steps
  std::map<std::string, HostTensor> weights, first_moments;  // at the end, by checkpoint name
};

// Micro-batch j of rank r is number r * accumulate + j of the step's.
Result run(const RunOptions& options);

// Gradients of each micro-batch of the first step alone, scaled as the step scales them.
std::vector<std::map<std::string, HostTensor>> single_gradients(const train::StepOptions& step,
                                                                int64_t micro_batches);

}  // namespace wam::multirank
