#include "wam/ops/silu.h"

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
  return {silu_grad(args.builder, args.output_grads[0], args.inputs[0])};
}

}  // namespace

const OpDef silu_op = {.name = "silu",
                       .infer = infer,
                       .backward = backward,
                       .in_place = {{0, 0}},
                       .traits = kElementwise};
const OpDef silu_grad_op = {
    .name = "silu_grad", .infer = infer_grad, .in_place = {{0, 0}, {0, 1}}, .traits = kElementwise};

ValueId silu(Builder& b, ValueId x) { return b.emit1(silu_op, {x}); }

ValueId silu_grad(Builder& b, ValueId dy, ValueId x) { return b.emit1(silu_grad_op, {dy, x}); }

}  // namespace wam
