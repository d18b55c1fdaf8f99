#include "wam/ops/adamw.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Inputs p, m, v, g, scalars.
std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 5, 5);
  rules::floating(args, 0);
  const TensorType& p = args.inputs[0];
  rules::dtype(args, 0, rules::grad_dtype(p.dtype));
  for (size_t i = 1; i < 4; ++i) rules::demand(args.inputs[i] == p, args, "m, v and g of p's type");
  rules::dtype(args, 4, DType::kF32);
  rules::shape(args, 4, Shape{kAdamwNumScalars});
  const double beta1 = args.attrs.real("beta1"), beta2 = args.attrs.real("beta2");
  rules::demand(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1 && args.attrs.real("eps") >= 0,
                args, "attributes 0 <= beta1, beta2 < 1 and eps >= 0");
  return {p, p, p};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost{16.0 * static_cast<double>(outputs[0].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

}  // namespace

const OpDef adamw_op = {.name = "adamw",
                        .infer = infer,
                        .cost = cost,
                        .in_place = {{0, 0}, {1, 1}, {2, 2}},
                        .traits = kNotDifferentiable};

AdamwState adamw(Builder& b, const AdamwState& state, ValueId g, ValueId scalars,
                 const AdamwOptions& options) {
  const auto outputs =
      b.emit(adamw_op, {state.p, state.m, state.v, g, scalars},
             {{"beta1", options.beta1}, {"beta2", options.beta2}, {"eps", options.eps}});
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace wam
