#include "wam/ops/sum_squares.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  return {{rules::grad_dtype(args.inputs[0].dtype), Shape{}}};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  return {2.0 * static_cast<double>(args.inputs[0].shape.num_elements()),
          static_cast<double>(args.inputs[0].size_bytes() + outputs[0].size_bytes())};
}

}  // namespace

const OpDef sum_squares_op = {
    .name = "sum_squares", .infer = infer, .cost = cost, .traits = kReduction};

ValueId sum_squares(Builder& b, ValueId x) { return b.emit1(sum_squares_op, {x}); }

}  // namespace wam
