#include "wam/train/step.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "wam/autodiff/gradients.h"
#include "wam/base/check.h"
#include "wam/ops/add.h"
#include "wam/ops/cast.h"
#include "wam/ops/rules.h"
#include "wam/passes/common_subexpressions.h"
#include "wam/passes/dead_code.h"
#include "wam/passes/decompose_fused.h"
#include "wam/passes/fuse_accumulation.h"
#include "wam/passes/fuse_bias_gradients.h"
#include "wam/passes/fuse_linear_gelu.h"
#include "wam/passes/fuse_padded_sums.h"
#include "wam/passes/fuse_residual_norm.h"

namespace wam::train {
namespace {

std::vector<Pass> forward_passes(bool fuse) {
  if (!fuse) return {{"decompose_fused", PassTier::kExact, decompose_fused}};
  return {{"merge_common_subexpressions", PassTier::kExact, merge_common_subexpressions},
          {"fuse_linear_gelu", PassTier::kExact, fuse_linear_gelu},
          {"fuse_residual_norm", PassTier::kExact, fuse_residual_norm},
          {"remove_dead_code", PassTier::kExact, remove_dead_code}};
}

std::vector<Pass> backward_passes(bool fuse) {
  std::vector<Pass> passes = {
      {"merge_common_subexpressions", PassTier::kExact, merge_common_subexpressions},
      {"remove_dead_code", PassTier::kExact, remove_dead_code}};
  if (fuse) {
    passes.push_back({"fuse_linear_dgrad_gelu", PassTier::kExact, fuse_linear_dgrad_gelu});
    passes.push_back({"fuse_padded_sums", PassTier::kRounding, fuse_padded_sums});
    passes.push_back({"fuse_gradient_sums", PassTier::kRounding, fuse_gradient_sums});
    passes.push_back({"fuse_bias_gradients", PassTier::kRounding, fuse_bias_gradients});
    passes.push_back({"fuse_accumulation", PassTier::kRounding, fuse_accumulation});
    passes.push_back({"remove_dead_code", PassTier::kExact, remove_dead_code});
  }
  return passes;
}

// Gradients go to states that mirror the parameters' flat buffers.
void store_gradients(Builder& b, ParamUser& user, std::span<const ValueId> grads, DType dtype,
                     bool accumulate) {
  size_t i = 0;
  for (const auto& [param, value] : user.used()) {
    ValueId grad = grads[i++];
    if (!grad.valid()) continue;
    grad = cast(b, grad, dtype);
    const TensorType type = b.type(grad);
    WAM_CHECK(type.shape == param->shape) << param->name << " has a gradient of " << type.to_string();
    const ValueId state = b.graph().add_state(
        "grad/" + param->name, type,
        {gradient_region(param->region), param->offset_elements * size_bytes(type.dtype),
         StateRole::kGradient});
    b.graph().add_update(state, accumulate ? add(b, state, grad) : grad);
  }
}

constexpr const char* kGradients = "gradients";

// What stores a gradient moves up to where the gradient is made: in its own type a gradient needs
// room for as long as it waits.
void store_early(Graph& graph) {
  std::unordered_map<NodeId, std::vector<NodeId>> behind;  // producer: what follows it
  std::vector<NodeId> kept;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    NodeId after;
    for (const ValueId input : node.inputs) {
      const Value& value = graph.value(input);
      if (value.kind == ValueKind::kIntermediate) after = value.producer;  // they have one such input
    }
    if (node.label == kGradients && after.valid()) {
      behind[after].push_back(id);
    } else {
      kept.push_back(id);
    }
  }
  std::vector<NodeId> order;
  const std::function<void(NodeId)> place = [&](NodeId id) {
    order.push_back(id);
    for (const NodeId next : behind[id]) place(next);
  };
  for (const NodeId id : kept) place(id);
  graph.set_order(std::move(order));
}

// Of the whole optimizer step, on all ranks.
int64_t micro_batches(const StepOptions& options) {
  return options.accumulate * options.sharding.mesh.world();
}

void run_shard_pass(Graph& graph, const StepOptions& options, const ParamSet& params, MicroBatchPlace place) {
  const std::optional<ShardOptions> shards = shard_options(options.sharding, params, !place.first, place.last);
  if (!shards) return;
  const Pass pass{"shard", PassTier::kRounding, [&](Graph& g) { return shard(g, *shards); }};
  run_passes(graph, std::span(&pass, 1), {.disable = {}, .dump_after = options.passes.dump_after,
                                          .dump_folder = options.passes.dump_folder});
}

void name_losses(Graph& graph, const DitTrain& model) {
  graph.add_output("loss", model.loss);
  graph.add_output("dynamics_loss", model.dynamics_loss);
  graph.add_output("action_loss", model.action_loss);
  if (model.sample_losses.valid()) graph.add_output("sample_losses", model.sample_losses);
}

}  // namespace

TimestepLayout timestep_layout(NoiseOption noise) {
  return noise == NoiseOption::kDecoupled ? TimestepLayout::kPerAction : TimestepLayout::kPerBlock;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const auto& list : {forward_passes(true), backward_passes(true), forward_passes(false)}) {
    for (const Pass& pass : list) {
      if (std::ranges::count(names, pass.name) == 0) names.push_back(pass.name);
    }
  }
  return names;
}

std::vector<const Program*> StepPrograms::all() const {
  std::vector<const Program*> programs = {&first, &validation, &optimizer};
  for (const auto* more : {&add, &last}) {
    if (*more) programs.push_back(&**more);
  }
  return programs;
}

Graph build_step_graph(const StepOptions& options, ParamSet& params, MicroBatchPlace place,
                       DitLayout* layout, RecomputeReport* recompute_report,
                       std::vector<PassReport>* pass_reports) {
  Graph graph(place.first ? "step_first" : place.last ? "step_last" : "step_add");
  Builder b(graph);
  ParamUser user(b, params, options.dtype);
  DitTrain model = build_dit_train(user, options.model, options.shape);
  name_losses(graph, model);
  if (layout != nullptr) *layout = model.layout;
  const std::vector<PassReport> forward = run_passes(graph, forward_passes(options.fuse), options.passes);
  std::vector<ValueId> wrt;
  for (const auto& [param, value] : user.used()) wrt.push_back(value);
  const std::vector<ValueId> grads = gradients(b, graph.find_output("loss"), wrt,
                                               1.0 / static_cast<double>(micro_batches(options)));
  // Gradients that are divided are added up after the sum over ranks.
  const bool add_here = !place.first && !options.sharding.divides_gradients();
  {
    ScopeGuard scope(b, {kGradients, -1, Phase::kBackward});
    store_gradients(b, user, grads, options.gradient_dtype, add_here);
  }
  store_early(graph);
  const std::vector<PassReport> backward =
      run_passes(graph, backward_passes(options.fuse), options.passes);
  const RecomputeReport report = recompute(graph, options.recompute);
  run_shard_pass(graph, options, params, place);
  if (recompute_report != nullptr) *recompute_report = report;
  if (pass_reports != nullptr) {
    pass_reports->insert(pass_reports->end(), forward.begin(), forward.end());
    pass_reports->insert(pass_reports->end(), backward.begin(), backward.end());
  }
  return graph;
}

Graph build_validation_graph(const StepOptions& options, ParamSet& params) {
  Graph graph("validation");
  Builder b(graph);
  ParamUser user(b, params, options.dtype);
  const DitTrain model = build_dit_train(user, options.model, options.shape);
  name_losses(graph, model);
  if (options.outputs_predictions) {
    graph.add_output("video_pred", model.video_pred);
    graph.add_output("action_pred", model.action_pred);
  }
  run_passes(graph, forward_passes(options.fuse), options.passes);
  run_shard_pass(graph, options, params, {.last = false});
  return graph;
}

StepPrograms build_step(const StepOptions& options, const Target& target) {
  check_disabled(options.passes.disable, pass_names());
  StepPrograms programs;
  programs.params = std::make_shared<ParamSet>("dit", /*trainable=*/true);
  const LowerOptions step_inputs{.input_region = kStepInputs};
  programs.first = lower(build_step_graph(options, *programs.params, {.last = options.accumulate == 1},
                                          &programs.layout, &programs.recompute, &programs.passes),
                         target, step_inputs);
  const bool last_differs = options.sharding.sums_early();
  if (options.accumulate > (last_differs ? 2 : 1)) {
    programs.add = lower(build_step_graph(options, *programs.params, {.first = false, .last = false}),
                         target, step_inputs);
  }
  if (options.accumulate > 1 && last_differs) {
    programs.last = lower(build_step_graph(options, *programs.params, {.first = false}), target, step_inputs);
  }
  programs.validation = lower(build_validation_graph(options, *programs.params), target, step_inputs);
  programs.optimizer = lower(build_optimizer_graph(options, *programs.params), target,
                             {.input_region = kOptimizerInputs});
  return programs;
}

}  // namespace wam::train
