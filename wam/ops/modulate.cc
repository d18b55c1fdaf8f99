#include "wam/ops/modulate.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Inputs x, scale, shift, index.
std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 4, 4);
  rules::floating(args, 0);
  rules::token_table(args, 1, 3);
  rules::demand(args.inputs[1] == args.inputs[2], args, "scale and shift of one type");
  return {args.inputs[0]};
}

// Inputs dy, x, scale, index.
std::vector<TensorType> infer_grad(const OpArgs& args) {
  rules::count(args, 4, 4);
  rules::floating(args, 0);
  rules::demand(args.inputs[0] == args.inputs[1], args, "dy of x's type");
  rules::token_table(args, 2, 3);
  return {args.inputs[1], args.inputs[2], args.inputs[2]};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const ModulateGrad grad = modulate_grad(args.builder, args.output_grads[0], args.inputs[0],
                                          args.inputs[1], args.inputs[3]);
  return {grad.x, grad.scale, grad.shift, ValueId{}};
}

template <int kFlopsPerElement>
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost{kFlopsPerElement * static_cast<double>(outputs[0].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

}  // namespace

const OpDef modulate_op = {.name = "modulate",
                           .infer = infer,
                           .backward = backward,
                           .cost = cost<3>,
                           .in_place = {{0, 0}}};
const OpDef modulate_grad_op = {.name = "modulate_grad",
                                .infer = infer_grad,
                                .cost = cost<5>,
                                .in_place = {{0, 0}, {0, 1}},
                                .traits = kReduction};

ValueId modulate(Builder& b, ValueId x, ValueId scale, ValueId shift, ValueId index) {
  const auto outputs = b.emit(modulate_op, {x, scale, shift, index});
  rules::constant_index(b, index, b.shape(scale)[1], false, "modulate");
  return outputs[0];
}

ModulateGrad modulate_grad(Builder& b, ValueId dy, ValueId x, ValueId scale, ValueId index) {
  const auto outputs = b.emit(modulate_grad_op, {dy, x, scale, index});
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace wam
