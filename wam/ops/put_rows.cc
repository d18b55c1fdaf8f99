#include "wam/ops/put_rows.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/take_rows.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  const TensorType& x = args.inputs[0];
  rules::demand(x.shape.ndim() >= 2, args, "x with a batch and a row dim");
  rules::dtype(args, 1, DType::kI32);
  rules::shape(args, 1, Shape{x.shape[1]});
  const int64_t rows = args.attrs.integer("rows");
  rules::demand(rows >= x.shape[1], args, "attribute 'rows' at least the number of rows put");
  return {{x.dtype, rules::with_dim(x.shape, 1, rows)}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  return {take_rows(args.builder, args.output_grads[0], args.inputs[1]), ValueId{}};
}

}  // namespace

const OpDef put_rows_op = {.name = "put_rows", .infer = infer, .backward = backward};

ValueId put_rows(Builder& b, ValueId x, ValueId index, int64_t rows) {
  rules::constant_index(b, index, rows, true, "put_rows");
  return b.emit1(put_rows_op, {x, index}, {{"rows", rows}});
}

}  // namespace wam
