// A device with the programs of a training step on it, fed with random numbers: what the benches
// run.
#pragma once

#include <functional>
#include <memory>

#include "wam/train/bench.h"
#include "wam/train/run_plan.h"

namespace wam::train {

// Programs of one optimizer step, loaded.
struct StepExecutors {
  std::unique_ptr<Executor> first, add, last, optimizer;
  std::unique_ptr<Executor> pictures;  // with FrozenWork::kOnline
  std::vector<Executor*> all() const;
};

class BenchRig {
 public:
  // Plans, allocates, fills the weights. PlanError if it does not fit.
  explicit BenchRig(const StepBenchOptions& options);

  const MemoryPlan& plan() const { return plan_; }
  const StepPrograms& programs() const { return programs_; }
  const EncoderPrograms* encoders() const { return encoders_ ? &*encoders_ : nullptr; }
  Memory& memory() { return *memory_; }
  Device& device() { return *device_; }

  StepExecutors load(bool profile, bool tune = false);
  // One optimizer step, with what is frozen; waits for its end.
  void run(StepExecutors& e);
  double loss() const { return loss_; }  // of the last step's first micro-batch
  // Bytes of the device, or of the process on a CPU, that were taken since before the allocation.
  int64_t seen_bytes() const { return seen_now() - seen_before_; }

 private:
  int64_t seen_now() const;
  void make_host_inputs(const Executor& executor);
  void feed(StepExecutors& e, Executor& step) const;

  StepBenchOptions options_;
  std::unique_ptr<Device> device_;
  StepPrograms programs_;
  std::optional<EncoderPrograms> encoders_;
  MemoryPlan plan_;
  int64_t seen_before_ = 0;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<const dist::Groups> groups_;
  std::vector<std::pair<std::string, HostTensor>>
      inputs_;         // of a micro-batch, written anew each time
  double loss_ = 0;
  HostTensor frames_;  // u8, of one run of `pictures`
};

// The step's programs for the device's memory, `frozen` (may be null) beside them.
StepPrograms build_bench_step(const StepBenchOptions& options, const MemoryLimit& limit,
                              const EncoderPrograms* frozen);
// Of the programs that are run.
MemoryPlan plan_of_bench(const StepBenchOptions& options, const StepPrograms& programs,
                         const EncoderPrograms* frozen);
// The encoders that `options` asks for; nothing where none runs.
std::optional<EncoderPrograms> build_bench_encoders(const StepBenchOptions& options);

// Median of `count` calls, in seconds of the wall clock.
double median_seconds(int64_t count, const std::function<void()>& run);

}  // namespace wam::train
