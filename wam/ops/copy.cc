#include "wam/ops/copy.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  return {args.inputs[0]};
}

std::vector<ValueId> backward(const BackwardArgs& args) { return {args.output_grads[0]}; }

}  // namespace

const OpDef copy_op = {
    .name = "copy", .infer = infer, .backward = backward, .in_place = {{0, 0}}, .traits = kElementwise};

ValueId copy(Builder& b, ValueId x) { return b.emit1(copy_op, {x}); }

}  // namespace wam
