// The training step on random inputs: samples per second, time by op kind, time outside kernels, and
// memory as planned against memory as used.
#pragma once

#include <string>
#include <vector>

#include "wam/train/config.h"

namespace wam::train {

struct OpTime {
  std::string op;
  double seconds = 0;  // of one optimizer step
  int64_t calls = 0;
  double flops = 0, bytes = 0;
};

struct StepBench {
  int64_t samples = 0;              // of one optimizer step
  double seconds = 0;               // of one optimizer step, median
  double profiled_seconds = 0;      // the same while every kernel is timed
  double kernel_seconds = 0;        // inside kernels, of profiled_seconds
  int64_t planned_bytes = 0;        // regions and arena of the step's programs
  int64_t arena_planned = 0, arena_touched = 0;  // high-water mark seen by poisoning
  int64_t resident_growth = 0;      // of the process, from before allocation to after the steps
  std::vector<OpTime> ops;          // most time first
};

// Runs forward, backward and optimizer `steps` times. Needs no dataset.
StepBench bench_step(const TrainConfig& config, int64_t steps);
std::string describe(const StepBench& bench);
std::string to_json(const StepBench& bench);

}  // namespace wam::train
