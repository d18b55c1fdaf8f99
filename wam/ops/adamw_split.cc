#include "wam/ops/adamw_split.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Inputs high, low, m, v, g, scalars.
std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 6, 6);
  constexpr DType kTypes[] = {DType::kBF16, DType::kI16, DType::kF32, DType::kF32};
  for (size_t i = 0; i < 4; ++i) {
    rules::dtype(args, i, kTypes[i]);
    rules::shape(args, i, args.inputs[0].shape);
  }
  rules::demand(args.inputs[4].dtype == DType::kF32 || args.inputs[4].dtype == DType::kBF16, args,
                "g in f32 or bf16");
  rules::shape(args, 4, args.inputs[0].shape);
  rules::dtype(args, 5, DType::kF32);
  rules::shape(args, 5, Shape{kAdamwNumScalars});
  const double beta1 = args.attrs.real("beta1"), beta2 = args.attrs.real("beta2");
  rules::demand(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1 && args.attrs.real("eps") >= 0,
                args, "attributes 0 <= beta1, beta2 < 1 and eps >= 0");
  return {args.inputs.begin(), args.inputs.begin() + 4};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost{18.0 * static_cast<double>(outputs[0].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

}  // namespace

const OpDef adamw_split_op = {.name = "adamw_split",
                              .infer = infer,
                              .cost = cost,
                              .in_place = {{0, 0}, {1, 1}, {2, 2}, {3, 3}},
                              .traits = kNotDifferentiable};

AdamwSplitState adamw_split(Builder& b, const AdamwSplitState& state, ValueId g, ValueId scalars,
                            const AdamwOptions& options) {
  const auto outputs =
      b.emit(adamw_split_op, {state.high, state.low, state.m, state.v, g, scalars},
             {{"beta1", options.beta1}, {"beta2", options.beta2}, {"eps", options.eps}});
  return {outputs[0], outputs[1], outputs[2], outputs[3]};
}

}  // namespace wam
