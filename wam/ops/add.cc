#include "wam/ops/add.h"

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
  const ValueId dy = args.output_grads[0];
  const Shape& shape = args.builder.shape(args.inputs[1]);
  return {dy, args.needs_grad[1] ? sum_rows(args.builder, dy, shape) : ValueId{}};
}

}  // namespace

const OpDef add_op = {.name = "add",
                      .infer = infer,
                      .backward = backward,
                      .in_place = {{0, 0}, {0, 1}},
                      .traits = kElementwise};

ValueId add(Builder& b, ValueId x, ValueId y) { return b.emit1(add_op, {x, y}); }

}  // namespace wam
