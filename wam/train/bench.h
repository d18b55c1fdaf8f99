// The training step on random inputs and weights: samples per second, time by op kind, time outside
// kernels, and memory as planned against memory as used.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wam/train/config.h"
#include "wam/train/step.h"

namespace wam::dist {
class World;  // dist/world.h
}

namespace wam::train {

// What one H200 reaches in a bf16 product of 8192 x 8192 x 8192 on random data: cuBLASLt, measured
// with bench/cuda_probe (docs/performance.md). Shares of the ceiling refer to it.
inline constexpr double kGemmCeiling = 766e12;
// What a plan may take of the same card: what cudaMemGetInfo() calls free once the context is made,
// less kDeviceReserve.
inline constexpr int64_t kH200Bytes = int64_t{149'000'000'000};

// What a step is fed with: nothing new; all that is drawn or cached, from the host, each
// micro-batch anew, as a trainer does; the same with pictures encoded on the device (prompts are
// cached in any case).
enum class FrozenWork : uint8_t { kNone, kCached, kOnline };

struct StepBenchOptions {
  StepOptions step;
  std::string device = "cpu";
  ExecMode exec = ExecMode::kGraph;
  int64_t steps = 20;
  uint64_t seed = 42;
  // The ranks that take the step together, as step.sharding's mesh says; null: this process alone.
  std::shared_ptr<dist::World> world = nullptr;
  // A world of one whose collectives (step.sharding) go through NCCL all the same.
  bool communicate = false;
  bool cut_at_collectives = false;
  bool with_optimizer = true;
  bool profile = true;  // also runs each kernel timed on its own
  bool trace = false;   // also records one captured step with CUPTI
  bool tune = false;    // times the products' algorithms first
  FrozenWork frozen = FrozenWork::kNone;
  std::shared_ptr<const TrainConfig> run = nullptr;  // whose encoders kOnline runs
};
// The step of a run, as `wam train` would take it.
StepBenchOptions bench_options(const TrainConfig& config);

struct OpTime {
  std::string op;
  double seconds = 0;  // of one optimizer step
  int64_t calls = 0;
  double flops = 0, bytes = 0;
};

struct TracedKernel {
  std::string name;
  double seconds = 0;  // of one optimizer step
  int64_t launches = 0;
};

struct StepBench {
  std::string device;
  int64_t samples = 0;  // of one optimizer step, of all ranks
  int64_t ranks = 1;
  int rank = 0;  // whose this is
  int64_t micro_batch = 0;
  double seconds = 0;            // of one optimizer step, median
  double optimizer_seconds = 0;  // inside it
  double flops = 0;              // executed in one optimizer step, by the plan
  double frozen_flops = 0;       // beside them, by the encoders
  double loss = 0;
  double profiled_seconds = 0;  // the same step while every kernel is timed
  double kernel_seconds = 0;    // inside kernels, of profiled_seconds
  int64_t planned_bytes = 0;    // regions, arena and constants of the step's programs
  int64_t seen_bytes = 0;       // taken from the device; on CPU: growth of the process
  std::map<std::string, int64_t> by_category;    // of planned_bytes
  int64_t arena_planned = 0, arena_touched = 0;  // CPU: high-water mark seen by poisoning, else 0
  double recomputed_flops = 0;                   // of `flops`
  std::vector<std::string> recomputed;
  std::vector<OpTime> ops;  // most time first
  // Of the step under CUPTI: from its first kernel to the end of its last, and in which one ran.
  double traced_seconds = 0, traced_busy_seconds = 0;
  std::vector<TracedKernel> traced;  // most time first
  // 1 - kernels' time over the time of the captured step, measured without CUPTI.
  double idle_share() const { return 1 - traced_busy_seconds / seconds; }
};

// Runs forward, backward and optimizer `steps` times. Needs no dataset. All ranks call it together;
// memory and times by op are the calling rank's.
StepBench bench_step(const StepBenchOptions& options);
// The plan's part of it, for `limit_bytes` of memory; needs no device.
StepBench plan_bench(const StepBenchOptions& options, int64_t limit_bytes);
std::string describe(const StepBench& bench);
std::string to_json(const StepBench& bench);

}  // namespace wam::train
