#include "wam/ops/relu.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  return {args.inputs[0]};
}

std::vector<TensorType> infer_grad(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::floating(args, 0);
  rules::demand(args.inputs[0] == args.inputs[1], args, "dy of x's type");
  return {args.inputs[0]};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  return {relu_grad(args.builder, args.output_grads[0], args.inputs[0])};
}

}  // namespace

const OpDef relu_op = {.name = "relu",
                       .infer = infer,
                       .backward = backward,
                       .in_place = {{0, 0}},
                       .traits = kElementwise};
const OpDef relu_grad_op = {
    .name = "relu_grad", .infer = infer_grad, .in_place = {{0, 0}, {0, 1}}, .traits = kElementwise};

ValueId relu(Builder& b, ValueId x) { return b.emit1(relu_op, {x}); }

ValueId relu_grad(Builder& b, ValueId dy, ValueId x) { return b.emit1(relu_grad_op, {dy, x}); }

}  // namespace wam
