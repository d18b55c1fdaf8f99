#include "wam/ops/linear_dgrad_gelu.h"

#include "wam/ops/gelu_tanh.h"
#include "wam/ops/linear.h"
#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Inputs dy, weight, pre.
std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 3, 3);
  const TensorType dx = linear_dgrad_op.infer({args.inputs.first(2), args.attrs}).front();
  rules::demand(args.inputs[2] == dx, args, "pre of the product's type " + dx.to_string());
  return {dx};
}

std::vector<ValueId> decompose(Builder& b, std::span<const ValueId> inputs, const Attrs& attrs) {
  return {gelu_tanh_grad(b, linear_dgrad(b, inputs[0], inputs[1], attrs.flag("kn")), inputs[2])};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost = cost_of(linear_dgrad_op, args, outputs);
  cost.flops += 20.0 * static_cast<double>(outputs[0].shape.num_elements());
  return cost;
}

}  // namespace

// Not in place of `pre`: a tile of the product is written before its row of `pre` is read.
const OpDef linear_dgrad_gelu_op = {.name = "linear_dgrad_gelu",
                                    .infer = infer,
                                    .decompose = decompose,
                                    .cost = cost,
                                    .traits = kMatrix};

ValueId linear_dgrad_gelu(Builder& b, ValueId dy, ValueId weight, ValueId pre, bool kn) {
  return b.emit1(linear_dgrad_gelu_op, {dy, weight, pre}, {{"kn", kn}});
}

}  // namespace wam
