// The optimizer as a graph: sums of gradients over ranks, their norm, AdamW on flat buffers or on
// this rank's parts of them, and the weights back to all ranks.
#include "wam/base/check.h"
#include "wam/ops/adamw_scalars.h"
#include "wam/ops/adamw_split.h"
#include "wam/ops/add.h"
#include "wam/ops/all_reduce.h"
#include "wam/ops/op_list.h"
#include "wam/ops/reduce_scatter.h"
#include "wam/ops/sum_squares.h"
#include "wam/train/step.h"

namespace wam::train {
namespace {

using dist::Axis;

void check_types(const StepOptions& options) {
  const auto is = [](DType a, DType b) { return a == b; };
  WAM_CHECK(is(options.dtype, DType::kF32) || is(options.dtype, DType::kBF16))
      << name(options.dtype);
  WAM_CHECK(is(options.gradient_dtype, DType::kF32) || is(options.gradient_dtype, options.dtype))
      << name(options.gradient_dtype) << " gradients beside " << name(options.dtype);
}

class OptimizerGraph {
 public:
  OptimizerGraph(Graph& graph, const StepOptions& options)
      : graph_(graph), b_(graph), options_(options), sharding_(options.sharding) {}

  void build(const ParamSet& params) {
    const ScopeGuard scope(b_, {"optimizer", -1, Phase::kUpdate});
    const ValueId schedule = graph_.add_input("schedule", {DType::kF32, Shape{kAdamwNumScalars}});
    std::vector<ValueId> grads;
    ValueId norm_squared;
    for (const FlatBuffer& buffer : params.buffers()) {
      grads.push_back(summed_gradient(buffer));
      const ValueId part = sum_squares(b_, grads.back());
      norm_squared = norm_squared.valid() ? add(b_, norm_squared, part) : part;
    }
    if (sharding_.divides_optimizer()) {
      norm_squared = all_reduce(b_, norm_squared, sharding_.group(Axis::kShard));
    }
    const ValueId scalars = adamw_scalars(b_, schedule, norm_squared, options_.clip_grad);
    for (size_t i = 0; i < params.buffers().size(); ++i)
      update(params.buffers()[i], grads[i], scalars);
    graph_.add_output("grad_norm_squared", norm_squared);
    graph_.add_output("scalars", scalars);
  }

 private:
  ValueId state(const char* prefix, const FlatBuffer& buffer, const std::string& region,
                int64_t elements, DType dtype, StateRole role) {
    return graph_.add_state(prefix + buffer.region, {dtype, Shape{elements}}, {region, 0, role});
  }

  // Each rank updates its part of weights that all of them keep whole.
  bool gathers_weights() const {
    return sharding_.divides_optimizer() && !sharding_.divides_weights();
  }

  // As long as what AdamW works on.
  int64_t kept(const FlatBuffer& buffer) const {
    return sharding_.divides_optimizer() ? sharding_.part_elements(buffer) : buffer.num_elements;
  }

  // The whole gradient, or this rank's part of it, of all samples of the step.
  ValueId summed_gradient(const FlatBuffer& buffer) {
    const bool early = sharding_.sums_early();
    const bool whole = !sharding_.divides_gradients() && !(early && sharding_.divides_optimizer());
    const ValueId stored = state("flat_grad/", buffer, gradient_region(buffer.region),
                                 whole ? sharding_.padded_elements(buffer) : kept(buffer),
                                 options_.gradient_dtype, StateRole::kGradient);
    ValueId grad = stored;
    if (whole && sharding_.divides_optimizer()) {
      grad = reduce_scatter(b_, grad, sharding_.group(Axis::kShard), sharding_.reduce_dtype);
    }
    if (sharding_.mesh.replicas == 1 || (early && sharding_.early_axis() == Axis::kReplica)) return grad;
    grad = all_reduce(b_, grad, sharding_.group(Axis::kReplica), sharding_.reduce_dtype);
    // In place: the sums of all buffers are needed together, for the norm.
    if (b_.type(grad) == b_.type(stored)) graph_.add_update(stored, grad);
    return grad;
  }

  // What AdamW reads of the weights; store_weights() takes the result back.
  ValueId weights(const FlatBuffer& buffer, ValueId& stored) {
    const int64_t elements = gathers_weights() ? sharding_.padded_elements(buffer) : kept(buffer);
    stored = state("flat/", buffer, buffer.region, elements, options_.dtype, StateRole::kWeight);
    if (!gathers_weights()) return stored;
    const int64_t begin = sharding_.part_begin(buffer);
    // A copy, not a view: the whole is overwritten later.
    return b_.emit1(slice_op, {stored},
                    {{"dim", int64_t{0}}, {"begin", begin}, {"end", begin + kept(buffer)}});
  }

  void store_weights(ValueId stored, ValueId part) {
    graph_.add_update(
        stored, gathers_weights() ? all_gather(b_, part, sharding_.group(Axis::kShard)) : part);
  }

  // AdamW on the f32 weights or on the two halves of the master.
  void update(const FlatBuffer& buffer, ValueId grad, ValueId scalars) {
    const auto moment = [&](const char* prefix, int which) {
      return state(prefix, buffer, moment_region(buffer.region, which), kept(buffer), DType::kF32,
                   StateRole::kMoment);
    };
    ValueId stored;
    const ValueId p = weights(buffer, stored);
    const ValueId m = moment("flat_m/", 0), v = moment("flat_v/", 1);
    if (options_.dtype == DType::kF32) {
      const AdamwState next = adamw(b_, {p, m, v}, grad, scalars, options_.adamw);
      store_weights(stored, next.p);
      graph_.add_update(m, next.m);
      graph_.add_update(v, next.v);
      return;
    }
    const ValueId low = state("flat_low/", buffer, low_region(buffer.region), kept(buffer),
                              DType::kI16, StateRole::kMaster);
    const AdamwSplitState next = adamw_split(b_, {p, low, m, v}, grad, scalars, options_.adamw);
    store_weights(stored, next.high);
    graph_.add_update(low, next.low);
    graph_.add_update(m, next.m);
    graph_.add_update(v, next.v);
  }

  Graph& graph_;
  Builder b_;
  const StepOptions& options_;
  const Sharding& sharding_;
};

}  // namespace

Graph build_optimizer_graph(const StepOptions& options, const ParamSet& params) {
  check_types(options);
  Graph graph("optimizer");
  OptimizerGraph(graph, options).build(params);
  return graph;
}

}  // namespace wam::train
