#include "wam/ops/mul.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/sum_rows.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::floating(args, 0);
  rules::same_dtype(args, 1);
  rules::demand(rules::is_suffix(args.inputs[1].shape, args.inputs[0].shape), args,
                "the second shape a suffix of the first");
  return {args.inputs[0]};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  Builder& b = args.builder;
  const ValueId dy = args.output_grads[0];
  std::vector<ValueId> grads(2);
  if (args.needs_grad[0]) grads[0] = mul(b, dy, args.inputs[1]);
  if (args.needs_grad[1]) {
    grads[1] = sum_rows(b, mul(b, dy, args.inputs[0]), b.shape(args.inputs[1]));
  }
  return grads;
}

}  // namespace

const OpDef mul_op = {.name = "mul",
                      .infer = infer,
                      .backward = backward,
                      .in_place = {{0, 0}, {0, 1}},
                      .traits = kElementwise};

ValueId mul(Builder& b, ValueId x, ValueId y) { return b.emit1(mul_op, {x, y}); }

}  // namespace wam
