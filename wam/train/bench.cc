#include "wam/train/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "wam/base/philox.h"
#include "wam/base/strings.h"
#include "wam/train/run_plan.h"
#include "wam/train/schedule.h"
#include "wam/train/session.h"

namespace wam::train {
namespace {

constexpr uint8_t kPoison = 0xA5;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t resident_bytes() {
  long size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return int64_t{resident} * sysconf(_SC_PAGESIZE);
}

// Standard normals in every float input, zeros in the others: never zeros where numbers are read.
void fill_inputs(Executor& executor) {
  uint64_t index = 0;
  for (const NamedOperand& input : executor.program().inputs) {
    HostTensor value = HostTensor::zeros(input.operand.type.dtype, input.operand.type.shape);
    Random random(1, RandomUse::kTest, 0, index++);
    if (value.dtype() == DType::kF32) {
      for (float& x : value.as<float>()) x = static_cast<float>(random.normal());
    }
    executor.write(input.name, value);
  }
}

struct Executors {
  std::unique_ptr<Executor> first, add, optimizer;
};

Executors load(const StepPrograms& programs, Device& device, std::shared_ptr<Memory> memory, bool profile) {
  const ExecOptions options{.profile = profile};
  Executors e{device.load(programs.first, memory, options), nullptr,
              device.load(programs.optimizer, memory, options)};
  if (programs.add) e.add = device.load(*programs.add, memory, options);
  return e;
}

void run_step(Executors& e, int64_t accumulate) {
  e.first->run();
  for (int64_t i = 1; i < accumulate; ++i) e.add->run();
  e.optimizer->run();
}

double median_seconds(Executors& e, int64_t accumulate, int64_t steps) {
  std::vector<double> times;
  run_step(e, accumulate);
  for (int64_t i = 0; i < steps; ++i) {
    const double start = now();
    run_step(e, accumulate);
    times.push_back(now() - start);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void add_profile(const Executor& executor, double runs, std::map<std::string, OpTime>& by_op, double& total) {
  for (size_t i = 0; i < executor.profile().size(); ++i) {
    const Step& step = executor.program().steps[i];
    const StepTime& time = executor.profile()[i];
    OpTime& op = by_op[step.op];
    const double share = static_cast<double>(time.runs) / runs;
    op.op = step.op;
    op.seconds += time.seconds / runs;
    op.calls += static_cast<int64_t>(share);
    op.flops += share * step.cost.flops;
    op.bytes += share * step.cost.bytes;
    total += time.seconds / runs;
  }
}

void profile(const StepPrograms& programs, Device& device, const std::shared_ptr<Memory>& memory,
             int64_t accumulate, int64_t steps, StepBench& bench) {
  Executors e = load(programs, device, memory, true);
  bench.profiled_seconds = 0;
  run_step(e, accumulate);
  const double start = now();
  for (int64_t i = 0; i < steps; ++i) run_step(e, accumulate);
  bench.profiled_seconds = (now() - start) / static_cast<double>(steps);
  std::map<std::string, OpTime> by_op;
  const double runs = static_cast<double>(steps + 1);
  for (const Executor* executor : {e.first.get(), e.add.get(), e.optimizer.get()}) {
    if (executor != nullptr) add_profile(*executor, runs, by_op, bench.kernel_seconds);
  }
  for (auto& [name, op] : by_op) bench.ops.push_back(op);
  std::ranges::sort(bench.ops, std::greater{}, &OpTime::seconds);
}

// Fills the arena with a pattern, runs once, and looks how far the pattern was overwritten.
int64_t touched_arena(const StepPrograms& programs, Device& device, std::shared_ptr<Memory> memory,
                      int64_t accumulate) {
  auto* arena = static_cast<uint8_t*>(memory->arena_address());
  const int64_t bytes = memory->plan().arena_bytes;
  std::memset(arena, kPoison, static_cast<size_t>(bytes));
  Executors e = load(programs, device, memory, false);
  fill_inputs(*e.first);
  run_step(e, accumulate);
  int64_t top = bytes;
  while (top > 0 && arena[top - 1] == kPoison) --top;
  return top;
}

}  // namespace

StepBench bench_step(const TrainConfig& config, int64_t steps) {
  set_threads(config.threads);
  const DitConfig model = resolve_model(config);
  const auto device = make_cpu_device();
  const int64_t prompt = config.text_encoder.prompt_tokens != 0 ? config.text_encoder.prompt_tokens
                                                                : model.text_len;
  const StepPrograms programs = build_step(step_options(config, model, prompt), device->target());
  std::vector<const Program*> used = {&programs.first, &programs.optimizer};
  if (programs.add) used.push_back(&*programs.add);
  const MemoryPlan plan = combine(used);
  StepBench bench{.samples = config.global_batch_size, .planned_bytes = plan.total_bytes()};
  const int64_t before = resident_bytes();
  const std::shared_ptr<Memory> memory = device->allocate(plan);
  StateAccess states(*programs.params, memory);
  initialise_weights(*programs.params, config.seed, states.writer(StateKind::kWeight));
  {
    Executors e = load(programs, *device, memory, false);
    fill_inputs(*e.first);
    e.optimizer->write("schedule", adamw_schedule(1e-5, 1e-5, config.optimizer.adamw, 1));
    bench.seconds = median_seconds(e, config.accumulate(), steps);
    bench.resident_growth = resident_bytes() - before;
  }
  profile(programs, *device, memory, config.accumulate(), steps, bench);
  bench.arena_planned = plan.arena_bytes;
  bench.arena_touched = touched_arena(programs, *device, memory, config.accumulate());
  return bench;
}

std::string describe(const StepBench& b) {
  std::string text = fmt::format(
      "{:.2f} samples/s, {:.2f} ms a step of {} samples\n"
      "outside kernels {:.2f} % of the profiled step ({:.2f} ms)\n"
      "memory planned {}, resident growth {}; arena planned {}, touched {}\n",
      static_cast<double>(b.samples) / b.seconds, 1e3 * b.seconds, b.samples,
      100 * (1 - b.kernel_seconds / b.profiled_seconds), 1e3 * b.profiled_seconds,
      format_bytes(b.planned_bytes), format_bytes(b.resident_growth), format_bytes(b.arena_planned),
      format_bytes(b.arena_touched));
  text += fmt::format("{:<24} {:>8} {:>10} {:>8} {:>10} {:>10}\n", "op", "calls", "ms", "%", "GFLOP/s", "GB/s");
  for (const OpTime& op : b.ops) {
    text += fmt::format("{:<24} {:>8} {:>10.3f} {:>8.1f} {:>10.1f} {:>10.1f}\n", op.op, op.calls,
                        1e3 * op.seconds, 100 * op.seconds / b.kernel_seconds, 1e-9 * op.flops / op.seconds,
                        1e-9 * op.bytes / op.seconds);
  }
  return text;
}

std::string to_json(const StepBench& b) {
  nlohmann::json ops = nlohmann::json::array();
  for (const OpTime& op : b.ops) {
    ops.push_back({{"op", op.op}, {"calls", op.calls}, {"seconds", op.seconds}, {"flops", op.flops},
                   {"bytes", op.bytes}});
  }
  const nlohmann::json j = {{"samples_per_second", static_cast<double>(b.samples) / b.seconds},
                            {"step_seconds", b.seconds},
                            {"outside_kernels", 1 - b.kernel_seconds / b.profiled_seconds},
                            {"planned_bytes", b.planned_bytes},
                            {"resident_growth_bytes", b.resident_growth},
                            {"arena_planned_bytes", b.arena_planned},
                            {"arena_touched_bytes", b.arena_touched},
                            {"ops", ops}};
  return j.dump(2) + "\n";
}

}  // namespace wam::train
