#include "wam/ops/sub.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/scale.h"
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
  std::vector<ValueId> grads = {args.output_grads[0], ValueId{}};
  if (args.needs_grad[1]) {
    grads[1] = scale(b, sum_rows(b, args.output_grads[0], b.shape(args.inputs[1])), -1);
  }
  return grads;
}

}  // namespace

const OpDef sub_op = {.name = "sub",
                      .infer = infer,
                      .backward = backward,
                      .in_place = {{0, 0}, {0, 1}},
                      .traits = kElementwise};

ValueId sub(Builder& b, ValueId x, ValueId y) { return b.emit1(sub_op, {x, y}); }

}  // namespace wam
