#include "wam/train/bench_rig.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "wam/base/check.h"
#include "wam/base/hash.h"
#include "wam/base/philox.h"
#include "wam/dist/device_groups.h"
#include "wam/dist/loopback.h"
#include "wam/dist/world.h"
#include "wam/train/device.h"
#include "wam/train/fit.h"
#include "wam/train/schedule.h"

namespace wam::train {
namespace {

int64_t resident_bytes() {
  long size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return int64_t{resident} * sysconf(_SC_PAGESIZE);
}

// Standard normals where the type floats, zeros in integers: never zeros where numbers are read.
HostTensor random_input(const TensorType& type, uint64_t index) {
  HostTensor value =
      HostTensor::zeros(is_floating(type.dtype) ? DType::kF32 : type.dtype, type.shape);
  if (is_floating(type.dtype)) fill_normal(value.as<float>(), 1, RandomUse::kTest, 0, index);
  return value.to(type.dtype);
}

HostTensor random_frames(const TensorType& type) {
  HostTensor value(type.dtype, type.shape);
  Random random(1, RandomUse::kTest, 0, 0);
  for (uint8_t& pixel : value.as<uint8_t>()) pixel = static_cast<uint8_t>(random.next_u32() >> 24);
  return value;
}

// First element in its region, and number, of what a rank keeps of a tensor.
std::pair<int64_t, int64_t> kept(const ParamSet& params, const Param& param, const ParamPart& part,
                                 const Sharding& sharding) {
  const int64_t begin = param.offset_elements + part.offset_elements;
  const int64_t count = part.shape.num_elements();
  if (!sharding.divides_weights()) return {begin, count};
  const FlatBuffer& buffer =
      *std::ranges::find(params.buffers(), param.region, &FlatBuffer::region);
  const int64_t from = sharding.part_begin(buffer), to = from + sharding.part_elements(buffer);
  const int64_t first = std::max(begin, from);
  return {first - from, std::min(begin + count, to) - first};
}

// Numbers of the size that initialise() gives, made on the device: uniform for whatever
// distribution, and small ones in place of zeros.
void fill_weights(const ParamSet& params, const Sharding& sharding, DType dtype, uint64_t seed,
                  Memory& memory) {
  for (const Param& param : params.params()) {
    for (const ParamPart& part : param.parts) {
      const double bound = part.init.kind == InitKind::kZeros ? 0.02 : uniform_bound(part);
      const bool ones = part.init.kind == InitKind::kOnes;
      const auto [first, count] = kept(params, param, part, sharding);
      if (count <= 0) continue;
      memory.fill_uniform(param.region, first * size_bytes(dtype), count, dtype,
                          static_cast<float>(ones ? 0.9 : -bound),
                          static_cast<float>(ones ? 1.1 : bound), seed ^ hash64(part.name));
    }
  }
}

std::shared_ptr<const dist::Groups> groups_of(const StepBenchOptions& options) {
  if (!options.communicate && options.world == nullptr) return nullptr;
  const bool nccl = is_cuda(options.device) && dist::has_nccl();
  const dist::Mesh& mesh = options.step.sharding.mesh;
  if (options.world == nullptr) {
    return nccl ? dist::make_nccl_groups(mesh, dist::Loopback(1).end(0))
                : dist::make_single_groups();
  }
  const auto& transport = options.world->transport();
  return nccl ? dist::make_nccl_groups(mesh, transport, &options.world->progress())
              : dist::make_host_groups(mesh, transport, {.progress = &options.world->progress()});
}

}  // namespace

std::vector<Executor*> StepExecutors::all() const {
  std::vector<Executor*> found;
  for (Executor* executor : {first.get(), add.get(), last.get(), optimizer.get(), pictures.get()}) {
    if (executor != nullptr) found.push_back(executor);
  }
  return found;
}

std::optional<EncoderPrograms> build_bench_encoders(const StepBenchOptions& options) {
  if (options.frozen != FrozenWork::kOnline) return std::nullopt;
  WAM_CHECK(options.run != nullptr) << "encoders of no run";
  return build_encoders(*options.run, options.step.model, vae_config(options.run->vae),
                        target_of(options.device), {options.step.dtype, options.step.dtype});
}

StepPrograms build_bench_step(const StepBenchOptions& options, const MemoryLimit& limit,
                              const EncoderPrograms* frozen) {
  const Target& target = target_of(options.device);
  std::vector<const Program*> beside;
  if (frozen != nullptr) beside.push_back(&frozen->pictures);
  if (fits_device(options.step.recompute))
    return build_fitting_step(options.step, target, limit, beside);
  return build_step(options.step, target);
}

MemoryPlan plan_of_bench(const StepBenchOptions& options, const StepPrograms& programs,
                         const EncoderPrograms* frozen) {
  std::vector<const Program*> used = {&programs.first};
  if (programs.add) used.push_back(&*programs.add);
  if (programs.last) used.push_back(&*programs.last);
  if (options.with_optimizer) used.push_back(&programs.optimizer);
  if (frozen != nullptr) used.push_back(&frozen->pictures);
  return combine(used);
}

double median_seconds(int64_t count, const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int64_t i = 0; i < count; ++i) {
    const Clock::time_point start = Clock::now();
    run();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

BenchRig::BenchRig(const StepBenchOptions& options)
    : options_(options), device_(open_device(options.device)) {
  const MemoryLimit limit = limit_of(*device_, is_cuda(options.device));
  encoders_ = build_bench_encoders(options);
  programs_ = build_bench_step(options, limit, encoders());
  plan_ = plan_of_bench(options, programs_, encoders());
  if (is_cuda(options.device) && plan_.total_bytes() > limit.bytes) {
    std::vector<const Program*> beside;
    if (encoders_) beside.push_back(&encoders_->pictures);
    check_fits(options.step, programs_, device_->target(), limit, beside);
  }
  seen_before_ = seen_now();
  memory_ = device_->allocate(plan_);
  groups_ = groups_of(options);
  fill_weights(*programs_.params, options.step.sharding, options.step.dtype, options.seed, *memory_);
  if (!encoders_) return;
  for (const ParamSet* set : {encoders_->vae.get(), encoders_->clip.get()}) {
    fill_weights(*set, {}, options.step.dtype, options.seed, *memory_);
  }
}

void BenchRig::make_host_inputs(const Executor& executor) {
  uint64_t index = 0;
  for (const NamedOperand& input : executor.program().inputs) {
    const bool encoded = input.name == "latents" || input.name == "y" || input.name == "clip";
    const bool online = options_.frozen == FrozenWork::kOnline;
    if (!(online && encoded))
      inputs_.emplace_back(input.name, random_input(input.operand.type, index));
    ++index;
  }
}

StepExecutors BenchRig::load(bool profile, bool tune) {
  const ExecOptions exec{.mode = options_.exec,
                         .profile = profile,
                         .groups = groups_,
                         .cut_at_collectives = options_.cut_at_collectives,
                         .tune = tune};
  StepExecutors e;
  e.first = device_->load(programs_.first, memory_, exec);
  if (programs_.add) e.add = device_->load(*programs_.add, memory_, exec);
  if (programs_.last) e.last = device_->load(*programs_.last, memory_, exec);
  if (inputs_.empty()) make_host_inputs(*e.first);
  for (const auto& [name, value] : inputs_) e.first->write(name, value);
  if (encoders_) {
    const ExecOptions alone{.mode = options_.exec, .profile = profile, .tune = tune};
    e.pictures = device_->load(encoders_->pictures, memory_, alone);
    if (frames_.empty()) frames_ = random_frames(e.pictures->program().inputs.front().operand.type);
  }
  if (!options_.with_optimizer) return e;
  e.optimizer = device_->load(programs_.optimizer, memory_, exec);
  e.optimizer->write("schedule", adamw_schedule(1e-5, 1e-5, options_.step.adamw, 1));
  return e;
}

// As a trainer does before each micro-batch: everything that is drawn or cached comes from the
// host, what the encoders make stays on the device.
void BenchRig::feed(StepExecutors& e, Executor& step) const {
  if (options_.frozen == FrozenWork::kNone) return;
  for (const auto& [name, value] : inputs_) step.write(name, value);
  if (!e.pictures) return;
  const int64_t batch = options_.step.shape.batch;
  const int64_t sub = e.pictures->program().inputs.front().operand.type.shape[0];
  for (int64_t begin = 0; begin < batch; begin += sub) {
    e.pictures->write("frames", frames_);
    e.pictures->run();
    const int64_t count = std::min(sub, batch - begin);
    for (const NamedOperand& output : e.pictures->program().outputs) {
      const TensorType& type = output.operand.type;
      const int64_t row = type.size_bytes() / type.shape[0];
      e.pictures->copy_output(output.name, count * row, step, output.name, begin * row);
    }
  }
}

void BenchRig::run(StepExecutors& e) {
  for (int64_t i = 0; i < options_.step.accumulate; ++i) {
    const bool is_last = e.last && i + 1 == options_.step.accumulate;
    Executor& step = i == 0 ? *e.first : is_last ? *e.last : *e.add;
    feed(e, step);
    step.run();
    if (i == 0) e.first->fetch("loss");  // before later programs use the arena
  }
  if (e.optimizer) e.optimizer->run();
  e.first->synchronize();
  loss_ = e.first->fetched("loss").as<float>()[0];
}

int64_t BenchRig::seen_now() const {
  return is_cuda(options_.device) ? -device_->free_bytes() : resident_bytes();
}

}  // namespace wam::train
