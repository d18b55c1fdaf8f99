#include "wam/ops/adamw_scalars.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::dtype(args, 0, DType::kF32);
  rules::shape(args, 0, Shape{8});
  rules::floating(args, 1);
  rules::demand(args.inputs[1].shape.num_elements() == 1, args, "a scalar norm");
  rules::demand(args.attrs.real("max_norm") >= 0, args, "attribute 'max_norm' >= 0");
  return {args.inputs[0]};
}

}  // namespace

const OpDef adamw_scalars_op = {
    .name = "adamw_scalars", .infer = infer, .traits = kNotDifferentiable};

ValueId adamw_scalars(Builder& b, ValueId schedule, ValueId norm_squared, double max_norm) {
  return b.emit1(adamw_scalars_op, {schedule, norm_squared}, {{"max_norm", max_norm}});
}

}  // namespace wam
