#include "wam/train/step.h"

#include <algorithm>

#include "wam/autodiff/gradients.h"
#include "wam/base/check.h"
#include "wam/ops/add.h"
#include "wam/ops/adamw_scalars.h"
#include "wam/ops/adamw_split.h"
#include "wam/ops/cast.h"
#include "wam/ops/rules.h"
#include "wam/ops/sum_squares.h"
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

void check_types(const StepOptions& options) {
  const auto is = [](DType a, DType b) { return a == b; };
  WAM_CHECK(is(options.dtype, DType::kF32) || is(options.dtype, DType::kBF16)) << name(options.dtype);
  WAM_CHECK(is(options.gradient_dtype, DType::kF32) || is(options.gradient_dtype, options.dtype))
      << name(options.gradient_dtype) << " gradients beside " << name(options.dtype);
}

ValueId flat_state(Graph& graph, const char* prefix, const FlatBuffer& buffer, const std::string& region,
                   DType dtype, StateRole role) {
  return graph.add_state(prefix + buffer.region, {dtype, Shape{buffer.num_elements}}, {region, 0, role});
}

// AdamW on one flat buffer, on the f32 weights or on the two halves of the master.
void update_buffer(Builder& b, const StepOptions& options, const FlatBuffer& buffer, ValueId grad,
                   ValueId scalars) {
  Graph& graph = b.graph();
  const auto moment = [&](const char* prefix, int which) {
    return flat_state(graph, prefix, buffer, moment_region(buffer.region, which), DType::kF32,
                      StateRole::kMoment);
  };
  const ValueId p = flat_state(graph, "flat/", buffer, buffer.region, options.dtype, StateRole::kWeight);
  const ValueId m = moment("flat_m/", 0), v = moment("flat_v/", 1);
  if (options.dtype == DType::kF32) {
    const AdamwState next = adamw(b, {p, m, v}, grad, scalars, options.adamw);
    graph.add_update(p, next.p);
    graph.add_update(m, next.m);
    graph.add_update(v, next.v);
    return;
  }
  const ValueId low = flat_state(graph, "flat_low/", buffer, low_region(buffer.region), DType::kI16,
                                 StateRole::kMaster);
  const AdamwSplitState next = adamw_split(b, {p, low, m, v}, grad, scalars, options.adamw);
  graph.add_update(p, next.high);
  graph.add_update(low, next.low);
  graph.add_update(m, next.m);
  graph.add_update(v, next.v);
}

void name_losses(Graph& graph, const DitTrain& model) {
  graph.add_output("loss", model.loss);
  graph.add_output("dynamics_loss", model.dynamics_loss);
  graph.add_output("action_loss", model.action_loss);
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
  if (add) programs.push_back(&*add);
  return programs;
}

Graph build_step_graph(const StepOptions& options, ParamSet& params, bool accumulate, DitLayout* layout,
                       RecomputeReport* recompute_report, std::vector<PassReport>* pass_reports) {
  Graph graph(accumulate ? "step_add" : "step_first");
  Builder b(graph);
  ParamUser user(b, params, options.dtype);
  DitTrain model = build_dit_train(user, options.model, options.shape);
  name_losses(graph, model);
  if (layout != nullptr) *layout = model.layout;
  const std::vector<PassReport> forward = run_passes(graph, forward_passes(options.fuse), options.passes);
  std::vector<ValueId> wrt;
  for (const auto& [param, value] : user.used()) wrt.push_back(value);
  const std::vector<ValueId> grads = gradients(b, graph.find_output("loss"), wrt,
                                               1.0 / static_cast<double>(options.accumulate));
  ScopeGuard scope(b, {"gradients", -1, Phase::kBackward});
  store_gradients(b, user, grads, options.gradient_dtype, accumulate);
  const std::vector<PassReport> backward =
      run_passes(graph, backward_passes(options.fuse), options.passes);
  const RecomputeReport report = recompute(graph, options.recompute);
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
  return graph;
}

Graph build_optimizer_graph(const StepOptions& options, const ParamSet& params) {
  check_types(options);
  Graph graph("optimizer");
  Builder b(graph);
  ScopeGuard scope(b, {"optimizer", -1, Phase::kUpdate});
  const ValueId schedule = graph.add_input("schedule", {DType::kF32, Shape{kAdamwNumScalars}});
  std::vector<ValueId> grads;
  ValueId norm_squared;
  for (const FlatBuffer& buffer : params.buffers()) {
    grads.push_back(flat_state(graph, "flat_grad/", buffer, gradient_region(buffer.region),
                               options.gradient_dtype, StateRole::kGradient));
    const ValueId part = sum_squares(b, grads.back());
    norm_squared = norm_squared.valid() ? add(b, norm_squared, part) : part;
  }
  const ValueId scalars = adamw_scalars(b, schedule, norm_squared, options.clip_grad);
  for (size_t i = 0; i < params.buffers().size(); ++i) {
    update_buffer(b, options, params.buffers()[i], grads[i], scalars);
  }
  graph.add_output("grad_norm_squared", norm_squared);
  graph.add_output("scalars", scalars);
  return graph;
}

StepPrograms build_step(const StepOptions& options, const Target& target) {
  check_disabled(options.passes.disable, pass_names());
  StepPrograms programs;
  programs.params = std::make_shared<ParamSet>("dit", /*trainable=*/true);
  const LowerOptions step_inputs{.input_region = kStepInputs};
  programs.first = lower(build_step_graph(options, *programs.params, false, &programs.layout,
                                          &programs.recompute, &programs.passes),
                         target, step_inputs);
  if (options.accumulate > 1) {
    programs.add = lower(build_step_graph(options, *programs.params, true, nullptr, nullptr, nullptr),
                         target, step_inputs);
  }
  programs.validation = lower(build_validation_graph(options, *programs.params), target, step_inputs);
  programs.optimizer = lower(build_optimizer_graph(options, *programs.params), target,
                             {.input_region = kOptimizerInputs});
  return programs;
}

}  // namespace wam::train
