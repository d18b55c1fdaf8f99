#include "wam/ops/upsample_nearest2x.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::ndim(args, 0, 5);
  const Shape& x = args.inputs[0].shape;
  return {{args.inputs[0].dtype, Shape{x[0], x[1], 2 * x[2], 2 * x[3], x[4]}}};
}

}  // namespace

const OpDef upsample_nearest2x_op = {.name = "upsample_nearest2x", .infer = infer};

ValueId upsample_nearest2x(Builder& b, ValueId x) { return b.emit1(upsample_nearest2x_op, {x}); }

}  // namespace wam
