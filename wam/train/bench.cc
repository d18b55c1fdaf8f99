#include "wam/train/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "wam/dist/world.h"
#include "wam/exec/cuda_trace.h"
#include "wam/train/bench_rig.h"
#include "wam/train/device.h"
#include "wam/train/fit.h"
#include "wam/train/session.h"

namespace wam::train {
namespace {

constexpr uint8_t kPoison = 0xA5;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void time_step(BenchRig& rig, const StepBenchOptions& options, StepBench& bench) {
  StepExecutors e = rig.load(false, options.tune);
  // The first run loads code, the second captures.
  for (int i = 0; i < 2; ++i) rig.run(e);
  bench.loss = rig.loss();
  if (options.world) options.world->barrier();
  bench.seconds = median_seconds(options.steps, [&] { rig.run(e); });
  if (e.optimizer) {
    bench.optimizer_seconds = median_seconds(options.steps, [&] {
      e.optimizer->run();
      e.optimizer->synchronize();
    });
  }
  bench.seen_bytes = rig.seen_bytes();
}

void add_profile(const Executor& executor, double runs, std::map<std::string, OpTime>& by_op,
                 double& total) {
  for (size_t i = 0; i < executor.profile().size(); ++i) {
    const Step& step = executor.program().steps[i];
    const StepTime& time = executor.profile()[i];
    OpTime& op = by_op[step.op];
    const double share = static_cast<double>(time.runs) / runs;
    op.op = step.op;
    op.seconds += time.seconds / runs;
    op.calls += std::lround(share);
    op.flops += share * step.cost.flops;
    op.bytes += share * step.cost.bytes;
    total += time.seconds / runs;
  }
}

// One captured step under CUPTI.
void trace(BenchRig& rig, StepBench& bench) {
  StepExecutors e = rig.load(false);
  for (int i = 0; i < 2; ++i) rig.run(e);
  const auto recording = DeviceTrace::begin();
  rig.run(e);
  const std::vector<DeviceActivity> activities = recording->end();
  if (activities.empty()) return;
  bench.traced_busy_seconds = busy_seconds(activities);
  double last = 0;
  std::map<std::string, TracedKernel> by_name;
  for (const DeviceActivity& a : activities) {
    TracedKernel& kernel = by_name[a.name];
    kernel.name = a.name;
    kernel.seconds += a.end - a.begin;
    ++kernel.launches;
    last = std::max(last, a.end);
  }
  bench.traced_seconds = last - activities.front().begin;
  for (auto& [name, kernel] : by_name) bench.traced.push_back(kernel);
  std::ranges::sort(bench.traced, std::greater{}, &TracedKernel::seconds);
}

void profile(BenchRig& rig, const StepBenchOptions& options, StepBench& bench) {
  StepExecutors e = rig.load(true);
  const int64_t steps = is_cuda(options.device) ? 1 : options.steps;
  rig.run(e);
  const double start = now();
  for (int64_t i = 0; i < steps; ++i) rig.run(e);
  bench.profiled_seconds = (now() - start) / static_cast<double>(steps);
  std::map<std::string, OpTime> by_op;
  const auto runs = static_cast<double>(steps + 1);
  for (const Executor* executor : e.all())
    add_profile(*executor, runs, by_op, bench.kernel_seconds);
  for (auto& [name, op] : by_op) bench.ops.push_back(op);
  std::ranges::sort(bench.ops, std::greater{}, &OpTime::seconds);
}

// Fills the arena with a pattern, runs once, and looks how far the pattern was overwritten.
int64_t touched_arena(BenchRig& rig) {
  auto* arena = static_cast<uint8_t*>(rig.memory().arena_address());
  const int64_t bytes = rig.plan().arena_bytes;
  std::memset(arena, kPoison, static_cast<size_t>(bytes));
  StepExecutors e = rig.load(false);
  rig.run(e);
  int64_t top = bytes;
  while (top > 0 && arena[top - 1] == kPoison) --top;
  return top;
}

}  // namespace

StepBenchOptions bench_options(const TrainConfig& config) {
  const DitConfig model = resolve_model(config);
  const int64_t prompt =
      config.text_encoder.prompt_tokens != 0 ? config.text_encoder.prompt_tokens : model.text_len;
  set_threads(config.threads);
  return {.step = step_options(config, model, prompt),
          .device = config.device,
          .seed = config.seed,
          .run = std::make_shared<TrainConfig>(config)};
}

namespace {

StepBench planned(const StepBenchOptions& options, const StepPrograms& programs,
                  const EncoderPrograms* frozen, const MemoryPlan& plan) {
  const auto added = static_cast<double>(options.step.accumulate - 1);
  StepBench bench{.device = options.device,
                  .samples = options.step.shape.batch * options.step.accumulate *
                             options.step.sharding.mesh.world(),
                  .ranks = options.step.sharding.mesh.world(),
                  .rank = options.step.sharding.mesh.rank,
                  .micro_batch = options.step.shape.batch,
                  .planned_bytes = plan.total_bytes(),
                  .by_category = plan.by_category,
                  .arena_planned = plan.arena_bytes,
                  .recomputed_flops = programs.recompute.recomputed_flops * (1 + added),
                  .recomputed = programs.recompute.dropped};
  for (int64_t i = 0; i < options.step.accumulate; ++i) {
    bench.flops += programs.micro_batch(i, options.step.accumulate).cost.flops;
  }
  if (options.with_optimizer) bench.flops += programs.optimizer.cost.flops;
  if (frozen != nullptr) {
    const auto sub = static_cast<double>(options.run->vae.sub_batch);
    bench.frozen_flops = frozen->pictures.cost.flops * static_cast<double>(bench.samples) / sub;
  }
  return bench;
}

}  // namespace

StepBench plan_bench(const StepBenchOptions& options, int64_t limit_bytes) {
  const std::optional<EncoderPrograms> encoders = build_bench_encoders(options);
  const EncoderPrograms* frozen = encoders ? &*encoders : nullptr;
  const StepPrograms programs = build_bench_step(options, {limit_bytes, options.device}, frozen);
  return planned(options, programs, frozen, plan_of_bench(options, programs, frozen));
}

StepBench bench_step(const StepBenchOptions& options) {
  BenchRig rig(options);
  StepBench bench = planned(options, rig.programs(), rig.encoders(), rig.plan());
  bench.device = rig.device().name();
  time_step(rig, options, bench);
  if (options.profile) profile(rig, options, bench);
  if (options.trace) trace(rig, bench);
  if (!is_cuda(options.device)) bench.arena_touched = touched_arena(rig);
  return bench;
}

}  // namespace wam::train
