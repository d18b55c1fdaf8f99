#include "tests/multirank/ranks.h"

#include <omp.h>

#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "wam/base/philox.h"
#include "wam/dist/device_groups.h"
#include "wam/dist/loopback.h"
#include "wam/models/weights.h"
#include "wam/ops/op_list.h"
#include "wam/train/device.h"
#include "wam/train/schedule.h"

namespace wam::multirank {
namespace {

using train::StateKind;

// Standard normals in every input; weights of losses must not be negative.
void fill_inputs(Executor& executor, int64_t step, int64_t micro_batch) {
  uint64_t index = 0;
  for (const NamedOperand& input : executor.program().inputs) {
    const TensorType& type = input.operand.type;
    HostTensor value(DType::kF32, type.shape);
    fill_normal(value.as<float>(), 17, RandomUse::kTest, static_cast<uint64_t>(step),
                static_cast<uint64_t>(micro_batch) * 100 + index++);
    if (input.name.find("weights") != std::string::npos || input.name == "action_mask") {
      for (float& x : value.as<float>()) x = std::abs(x);
    }
    executor.write(input.name, value.to(type.dtype));
  }
}

class Rank {
 public:
  Rank(const RunOptions& options, std::shared_ptr<dist::Transport> transport)
      : options_(options), transport_(std::move(transport)) {
    device_ = train::open_device(options.device);
    step_ = options.step;
    step_.sharding.mesh = dist::make_mesh(options.world, transport_->rank(), options.shard_size);
    programs_ = train::build_step(step_, device_->target());
    memory_ = device_->allocate(combine(programs_.all()));
    states_ = std::make_unique<train::StateAccess>(*programs_.params, memory_, step_.dtype,
                                                   step_.sharding);
    initialise_weights(*programs_.params, 3, states_->writer(StateKind::kWeight));
    const ExecOptions exec{.mode = options.exec,
                           .poison = options.poison,
                           .groups = make_groups(),
                           .cut_at_collectives = options.cut_at_collectives};
    first_ = device_->load(programs_.first, memory_, exec);
    if (programs_.add) add_ = device_->load(*programs_.add, memory_, exec);
    if (programs_.last) last_ = device_->load(*programs_.last, memory_, exec);
    optimizer_ = device_->load(programs_.optimizer, memory_, exec);
    groups_ = exec.groups;
    // Losses are gathered by the host.
    world_ = dist::make_host_groups(step_.sharding.mesh, transport_)->world;
  }

  void train(Result& result) {
    for (int64_t step = 0; step < options_.steps; ++step) {
      const std::vector<double> own = run_micro_batches(step);
      std::vector<double> all(own.size() * static_cast<size_t>(options_.world));
      world_->all_gather(own.data(), all.data(), std::ssize(own) * int64_t{sizeof(double)},
                         nullptr);
      double loss = 0;
      for (const double part : all) loss += part / static_cast<double>(all.size());
      optimizer_->write("schedule",
                        train::adamw_schedule(options_.lr, 0.01, step_.adamw, step + 1));
      optimizer_->run();
      count_bytes(result);
      result.losses.push_back(loss);
      result.grad_norms.push_back(std::sqrt(optimizer_->read("grad_norm_squared").as<float>()[0]));
    }
    collect(StateKind::kWeight, result.weights);
    collect(StateKind::kFirstMoment, result.first_moments);
  }

 private:
  std::shared_ptr<const dist::Groups> make_groups() const {
    const dist::Mesh& mesh = step_.sharding.mesh;
    if (options_.nccl) return dist::make_nccl_groups(mesh, transport_);
    if (options_.device != "cpu") return dist::make_staged_groups(mesh, transport_);
    return dist::make_host_groups(mesh, transport_);
  }

  std::vector<double> run_micro_batches(int64_t step) {
    std::vector<double> losses(static_cast<size_t>(step_.accumulate));
    for (int64_t j = 0; j < step_.accumulate; ++j) {
      Executor& executor =
          j == 0 ? *first_ : last_ && j + 1 == step_.accumulate ? *last_ : *add_;
      const int64_t which = options_.reverse ? step_.accumulate - 1 - j : j;
      fill_inputs(executor, step, transport_->rank() * step_.accumulate + which);
      executor.run();
      losses[static_cast<size_t>(which)] = executor.read("loss").as<float>()[0];
    }
    return losses;
  }

  static int64_t planned(const Program& program) {
    int64_t bytes = 0;
    for (const Step& step : program.steps) {
      if (find_op(step.op)->has(kCollective)) bytes += static_cast<int64_t>(step.cost.bytes);
    }
    return bytes;
  }

  void count_bytes(Result& result) const {
    result.planned_bytes += planned(programs_.optimizer);
    for (int64_t j = 0; j < step_.accumulate; ++j)
      result.planned_bytes += planned(programs_.micro_batch(j, step_.accumulate));
    result.received_bytes = 0;
    for (const dist::Axis axis : {dist::Axis::kShard, dist::Axis::kReplica}) {
      result.collective_seconds = std::max(result.collective_seconds, groups_->on(axis).stats().seconds);
      result.received_bytes += groups_->on(axis).stats().bytes_received;
    }
  }

  void collect(StateKind kind, std::map<std::string, HostTensor>& to) {
    for (const Param& param : programs_.params->params()) {
      for (const ParamPart& part : param.parts) {
        HostTensor value = states_->collect(kind, param, part, options_.world - 1, *transport_);
        if (transport_->rank() == options_.world - 1) to[part.name] = std::move(value);
      }
    }
  }

  const RunOptions& options_;
  std::shared_ptr<dist::Transport> transport_;
  train::StepOptions step_;
  std::unique_ptr<Device> device_;
  train::StepPrograms programs_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<train::StateAccess> states_;
  std::unique_ptr<Executor> first_, add_, last_, optimizer_;
  std::shared_ptr<const dist::Groups> groups_;
  std::shared_ptr<dist::Communicator> world_;
};

}  // namespace

train::StepOptions small_step(DType dtype) {
  train::StepOptions o;
  DitConfig& c = o.model;
  c.dim = 32;
  c.layers = 3;
  c.heads = 2;
  c.ffn_dim = 48;
  c.freq_dim = 16;
  c.text_dim = 24;
  c.text_len = 12;
  c.clip_dim = 20;
  c.clip_tokens = 5;
  c.latent_channels = 5;
  c.action_dim = 4;
  c.state_dim = 5;
  c.coder_dim = 24;
  c.num_blocks = 2;
  c.actions_per_block = 3;
  c.latent_height = 4;
  c.latent_width = 4;
  o.shape = {.batch = 1, .text_tokens = 7};
  o.dtype = dtype;
  return o;
}

Result run(const RunOptions& options) {
  dist::Loopback loopback(options.world);
  std::vector<Result> results(static_cast<size_t>(options.world));
  std::exception_ptr error;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int r = 0; r < options.world; ++r) {
    threads.emplace_back([&, r] {
      omp_set_num_threads(1);
      try {
        Rank(options, loopback.end(r)).train(results[static_cast<size_t>(r)]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        loopback.abandon(r);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  for (const Result& result : results) {
    if (result.losses != results.back().losses || result.grad_norms != results.back().grad_norms) {
      throw std::runtime_error("the ranks do not agree on loss and gradient norm");
    }
  }
  return std::move(results.back());
}

std::vector<std::map<std::string, HostTensor>> single_gradients(const train::StepOptions& options,
                                                                int64_t micro_batches) {
  train::StepOptions step = options;
  step.accumulate = micro_batches;
  const auto device = make_cpu_device();
  const train::StepPrograms programs = train::build_step(step, device->target());
  const auto memory = device->allocate(combine(programs.all()));
  train::StateAccess states(*programs.params, memory, step.dtype);
  initialise_weights(*programs.params, 3, states.writer(StateKind::kWeight));
  const auto first = device->load(programs.first, memory, {});
  std::vector<std::map<std::string, HostTensor>> all;
  for (int64_t i = 0; i < micro_batches; ++i) {
    fill_inputs(*first, 0, i);
    first->run();
    auto& grads = all.emplace_back();
    for (const Param& param : programs.params->params()) {
      for (const ParamPart& part : param.parts) {
        HostTensor grad(DType::kF32, part.shape);
        memory->read_region(gradient_region(param.region),
                            (param.offset_elements + part.offset_elements) * int64_t{sizeof(float)},
                            grad.data(), grad.size_bytes());
        grads[part.name] = std::move(grad);
      }
    }
  }
  return all;
}

}  // namespace wam::multirank
