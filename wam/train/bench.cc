#include "wam/train/bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "wam/base/hash.h"
#include "wam/base/philox.h"
#include "wam/dist/device_groups.h"
#include "wam/dist/loopback.h"
#include "wam/dist/world.h"
#include "wam/train/device.h"
#include "wam/train/fit.h"
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
    const TensorType& type = input.operand.type;
    HostTensor value =
        HostTensor::zeros(is_floating(type.dtype) ? DType::kF32 : type.dtype, type.shape);
    if (is_floating(type.dtype)) fill_normal(value.as<float>(), 1, RandomUse::kTest, 0, index);
    ++index;
    executor.write(input.name, value.to(type.dtype));
  }
}

// First element in its region, and number, of what a rank keeps of a tensor.
std::pair<int64_t, int64_t> kept(const ParamSet& params, const Param& param, const ParamPart& part,
                                 const Sharding& sharding) {
  const int64_t begin = param.offset_elements + part.offset_elements, count = part.shape.num_elements();
  if (!sharding.divides_weights()) return {begin, count};
  const FlatBuffer& buffer = *std::ranges::find(params.buffers(), param.region, &FlatBuffer::region);
  const int64_t from = sharding.part_begin(buffer), to = from + sharding.part_elements(buffer);
  const int64_t first = std::max(begin, from);
  return {first - from, std::min(begin + count, to) - first};
}

// Numbers of the size that initialise() gives, made on the device: uniform for whatever
// distribution, and small ones in place of zeros.
void fill_weights(const ParamSet& params, const StepOptions& options, uint64_t seed,
                  Memory& memory) {
  for (const Param& param : params.params()) {
    for (const ParamPart& part : param.parts) {
      const double bound = part.init.kind == InitKind::kZeros ? 0.02 : uniform_bound(part);
      const bool ones = part.init.kind == InitKind::kOnes;
      const auto [first, count] = kept(params, param, part, options.sharding);
      if (count <= 0) continue;
      memory.fill_uniform(param.region, first * size_bytes(options.dtype), count, options.dtype,
                          static_cast<float>(ones ? 0.9 : -bound),
                          static_cast<float>(ones ? 1.1 : bound), seed ^ hash64(part.name));
    }
  }
}

struct Executors {
  std::unique_ptr<Executor> first, add, last, optimizer;
};

std::shared_ptr<const dist::Groups> groups_of(const StepBenchOptions& options) {
  if (!options.communicate && options.world == nullptr) return nullptr;
  const bool nccl = is_cuda(options.device) && dist::has_nccl();
  const dist::Mesh& mesh = options.step.sharding.mesh;
  if (options.world == nullptr) {
    return nccl ? dist::make_nccl_groups(mesh, dist::Loopback(1).end(0)) : dist::make_single_groups();
  }
  const auto& transport = options.world->transport();
  return nccl ? dist::make_nccl_groups(mesh, transport, &options.world->progress())
              : dist::make_host_groups(mesh, transport, {.progress = &options.world->progress()});
}

StepPrograms build(const StepBenchOptions& options, const MemoryLimit& limit) {
  const Target& target = target_of(options.device);
  if (fits_device(options.step.recompute))
    return build_fitting_step(options.step, target, limit, {});
  return build_step(options.step, target);
}

MemoryPlan plan_of(const StepBenchOptions& options, const StepPrograms& programs) {
  std::vector<const Program*> used = {&programs.first};
  if (programs.add) used.push_back(&*programs.add);
  if (programs.last) used.push_back(&*programs.last);
  if (options.with_optimizer) used.push_back(&programs.optimizer);
  return combine(used);
}

// One device with a step's programs on it.
class Rig {
 public:
  explicit Rig(const StepBenchOptions& options)
      : options_(options), device_(open_device(options.device)) {
    const MemoryLimit limit = limit_of(*device_, is_cuda(options.device));
    programs_ = build(options, limit);
    plan_ = plan_of(options, programs_);
    if (is_cuda(options.device) && plan_.total_bytes() > limit.bytes) {
      check_fits(options.step, programs_, device_->target(), limit, {});
    }
    free_before_ = seen_now();
    memory_ = device_->allocate(plan_);
    groups_ = groups_of(options);
    fill_weights(*programs_.params, options.step, options.seed, *memory_);
  }

  const MemoryPlan& plan() const { return plan_; }
  const StepPrograms& programs() const { return programs_; }
  Memory& memory() { return *memory_; }
  Device& device() { return *device_; }

  Executors load(bool profile) {
    const ExecOptions exec{.mode = options_.exec,
                           .profile = profile,
                           .groups = groups_,
                           .cut_at_collectives = options_.cut_at_collectives};
    Executors e{device_->load(programs_.first, memory_, exec), nullptr, nullptr, nullptr};
    if (programs_.add) e.add = device_->load(*programs_.add, memory_, exec);
    if (programs_.last) e.last = device_->load(*programs_.last, memory_, exec);
    fill_inputs(*e.first);
    if (!options_.with_optimizer) return e;
    e.optimizer = device_->load(programs_.optimizer, memory_, exec);
    e.optimizer->write("schedule", adamw_schedule(1e-5, 1e-5, options_.step.adamw, 1));
    return e;
  }

  void run(Executors& e) {
    e.first->run();
    e.first->fetch("loss");  // before later programs use the arena
    for (int64_t i = 1; i < options_.step.accumulate; ++i) {
      (e.last && i + 1 == options_.step.accumulate ? e.last : e.add)->run();
    }
    if (e.optimizer) e.optimizer->run();
    e.first->synchronize();
    loss_ = e.first->fetched("loss").as<float>()[0];
  }
  double loss() const { return loss_; }  // of the last step's first micro-batch

  // Bytes of the device, or of the process on a CPU, that were taken since before the allocation.
  int64_t seen_bytes() const { return seen_now() - free_before_; }

 private:
  int64_t seen_now() const {
    return is_cuda(options_.device) ? -device_->free_bytes() : resident_bytes();
  }

  const StepBenchOptions& options_;
  std::unique_ptr<Device> device_;
  StepPrograms programs_;
  MemoryPlan plan_;
  int64_t free_before_ = 0;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<const dist::Groups> groups_;
  double loss_ = 0;
};

template <typename F>
double median_seconds(int64_t count, const F& run) {
  std::vector<double> times;
  for (int64_t i = 0; i < count; ++i) {
    const double start = now();
    run();
    times.push_back(now() - start);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void time_step(Rig& rig, const StepBenchOptions& options, StepBench& bench) {
  Executors e = rig.load(false);
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

void profile(Rig& rig, const StepBenchOptions& options, StepBench& bench) {
  Executors e = rig.load(true);
  const int64_t steps = is_cuda(options.device) ? 1 : options.steps;
  rig.run(e);
  const double start = now();
  for (int64_t i = 0; i < steps; ++i) rig.run(e);
  bench.profiled_seconds = (now() - start) / static_cast<double>(steps);
  std::map<std::string, OpTime> by_op;
  const auto runs = static_cast<double>(steps + 1);
  for (const Executor* executor : {e.first.get(), e.add.get(), e.last.get(), e.optimizer.get()}) {
    if (executor != nullptr) add_profile(*executor, runs, by_op, bench.kernel_seconds);
  }
  for (auto& [name, op] : by_op) bench.ops.push_back(op);
  std::ranges::sort(bench.ops, std::greater{}, &OpTime::seconds);
}

// Fills the arena with a pattern, runs once, and looks how far the pattern was overwritten.
int64_t touched_arena(Rig& rig) {
  auto* arena = static_cast<uint8_t*>(rig.memory().arena_address());
  const int64_t bytes = rig.plan().arena_bytes;
  std::memset(arena, kPoison, static_cast<size_t>(bytes));
  Executors e = rig.load(false);
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
  return {
      .step = step_options(config, model, prompt), .device = config.device, .seed = config.seed};
}

namespace {

StepBench planned(const StepBenchOptions& options, const StepPrograms& programs,
                  const MemoryPlan& plan) {
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
  for (int64_t i = 0; i < options.step.accumulate; ++i)
    bench.flops += programs.micro_batch(i, options.step.accumulate).cost.flops;
  if (options.with_optimizer) bench.flops += programs.optimizer.cost.flops;
  return bench;
}

}  // namespace

StepBench plan_bench(const StepBenchOptions& options, int64_t limit_bytes) {
  const StepPrograms programs = build(options, {limit_bytes, options.device});
  return planned(options, programs, plan_of(options, programs));
}

StepBench bench_step(const StepBenchOptions& options) {
  Rig rig(options);
  StepBench bench = planned(options, rig.programs(), rig.plan());
  bench.device = rig.device().name();
  time_step(rig, options, bench);
  if (options.profile) profile(rig, options, bench);
  if (!is_cuda(options.device)) bench.arena_touched = touched_arena(rig);
  return bench;
}

}  // namespace wam::train
