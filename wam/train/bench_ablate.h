// The best setting of a training step, and beside it one thing at a time turned off or set
// otherwise.
#pragma once

#include <string>
#include <vector>

#include "wam/train/bench.h"

namespace wam::train {

struct Ablation {
  std::string name;     // "no fusion"
  std::string setting;  // as run: "8 x 4, graph, recompute none"
  std::string
      refusal;  // why the setting did not fit as it was; it then ran in smaller micro-batches
  bool ran = false;
  StepBench bench;      // without a profile
  std::string against;  // name of the one it differs from in the one thing
  double slower = 0;    // its time over that one's, less 1
};

struct AblateOptions {
  StepBenchOptions best;
  std::vector<std::string> only;  // names to run beside the best one; empty: all
};

// In the order they are run: the best; micro-batches 1, 2, 4, 8, 16, 32 of the same samples (those
// that fit only with recompute get as little of it as fits); and each thing alone. `progress` is
// called with each as it is done.
std::vector<Ablation> bench_ablate(const AblateOptions& options, void (*progress)(const Ablation&));
std::vector<std::string> ablation_names();
std::string describe(const std::vector<Ablation>& ablations);
std::string to_json(const std::vector<Ablation>& ablations);

// The products' algorithms, cuBLASLt's first choice and tuned, in turns on one device: medians of a
// step, and in how many of the rounds the tuned one was faster.
struct TunedBench {
  std::string device;
  int64_t rounds = 0, wins = 0;
  double first_seconds = 0, tuned_seconds = 0;
  double tuning_seconds = 0;
  std::string algorithms;  // the table
};
TunedBench bench_tuned(const StepBenchOptions& options, int64_t rounds);
std::string describe(const TunedBench& bench);

}  // namespace wam::train
