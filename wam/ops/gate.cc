#include "wam/ops/gate.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Inputs x, g, index.
std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 3, 3);
  rules::floating(args, 0);
  rules::token_table(args, 1, 2);
  return {args.inputs[0]};
}

// Inputs dy, x, g, index.
std::vector<TensorType> infer_grad(const OpArgs& args) {
  rules::count(args, 4, 4);
  rules::floating(args, 0);
  rules::demand(args.inputs[0] == args.inputs[1], args, "dy of x's type");
  rules::token_table(args, 2, 3);
  return {args.inputs[1], args.inputs[2]};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const GateGrad grad =
      gate_grad(args.builder, args.output_grads[0], args.inputs[0], args.inputs[1], args.inputs[2]);
  return {grad.x, grad.g, ValueId{}};
}

OpCost cost_grad(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost{3.0 * static_cast<double>(outputs[0].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

}  // namespace

const OpDef gate_op = {.name = "gate", .infer = infer, .backward = backward, .in_place = {{0, 0}}};
const OpDef gate_grad_op = {.name = "gate_grad",
                            .infer = infer_grad,
                            .cost = cost_grad,
                            .in_place = {{0, 0}, {0, 1}},
                            .traits = kReduction};

ValueId gate(Builder& b, ValueId x, ValueId g, ValueId index) {
  const auto outputs = b.emit(gate_op, {x, g, index});
  rules::constant_index(b, index, b.shape(g)[1], false, "gate");
  return outputs[0];
}

GateGrad gate_grad(Builder& b, ValueId dy, ValueId x, ValueId g, ValueId index) {
  const auto outputs = b.emit(gate_grad_op, {dy, x, g, index});
  return {outputs[0], outputs[1]};
}

}  // namespace wam
