#include "wam/ops/broadcast_rows.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/sum_rows.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const Shape shape(args.attrs.integers("shape"));
  rules::demand(rules::is_suffix(args.inputs[0].shape, shape), args, "a suffix of attribute 'shape'");
  return {{args.inputs[0].dtype, shape}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  return {sum_rows(args.builder, args.output_grads[0], args.builder.shape(args.inputs[0]))};
}

}  // namespace

const OpDef broadcast_rows_op = {.name = "broadcast_rows", .infer = infer, .backward = backward};

ValueId broadcast_rows(Builder& b, ValueId x, const Shape& shape) {
  if (b.shape(x) == shape) return x;
  return b.emit1(broadcast_rows_op, {x},
                 {{"shape", std::vector<int64_t>(shape.dims().begin(), shape.dims().end())}});
}

}  // namespace wam
