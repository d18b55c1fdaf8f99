// Each kernel of a training step on its own: time beside its floor, which is the larger of its
// bytes over the bandwidth of a large copy and its FLOPs over the rate of a large product, both
// measured on the same device in the same call.
#pragma once

#include <string>
#include <vector>

#include "wam/train/bench.h"

namespace wam::train {

struct KernelTime {
  std::string op, label;  // label: the first step of the program that it is
  std::string types;      // "bf16[8, 968, 3072], ... -> ..."
  int64_t calls = 0;      // in one optimizer step
  double seconds = 0;     // of one call, median
  double flops = 0, bytes = 0;
  double floor_seconds = 0;
  bool bound_by_bytes = false;
};

struct KernelBench {
  std::string device;
  double copy_rate = 0;             // byte/s, read and written
  double product_rate = 0;          // FLOP/s
  std::vector<KernelTime> kernels;  // most time in a step first
};

// Steps of the programs (options.step, options.with_optimizer) that differ in op, types, attributes
// or in what they overwrite. On a GPU a call's operands are not in its cache. `only`: part of the
// ops' names to time; empty: all.
KernelBench bench_kernels(const StepBenchOptions& options, const std::string& only = "");
std::string describe(const KernelBench& bench);
std::string to_json(const KernelBench& bench);

// `step` of `from` alone, `launches` times, on `copies` sets of operands in turn. They lie in
// region "bench", constants apart; what overlaps in `from` overlaps here.
Program isolate(const Program& from, const Step& step, int64_t copies, int64_t launches);

}  // namespace wam::train
