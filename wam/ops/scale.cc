#include "wam/ops/scale.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  return {args.inputs[0]};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  return {scale(args.builder, args.output_grads[0], args.attrs.real("factor"))};
}

}  // namespace

const OpDef scale_op = {.name = "scale",
                        .infer = infer,
                        .backward = backward,
                        .in_place = {{0, 0}},
                        .traits = kElementwise};

ValueId scale(Builder& b, ValueId x, double factor, double offset) {
  return b.emit1(scale_op, {x}, {{"factor", factor}, {"offset", offset}});
}

}  // namespace wam
