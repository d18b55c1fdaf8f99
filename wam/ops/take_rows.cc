#include "wam/ops/take_rows.h"

#include "wam/ops/op_list.h"
#include "wam/ops/put_rows.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  const TensorType& x = args.inputs[0];
  rules::demand(x.shape.ndim() >= 2, args, "x with a batch and a row dim");
  rules::dtype(args, 1, DType::kI32);
  rules::ndim(args, 1, 1);
  return {{x.dtype, rules::with_dim(x.shape, 1, args.inputs[1].shape[0])}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const int64_t rows = args.builder.shape(args.inputs[0])[1];
  return {put_rows(args.builder, args.output_grads[0], args.inputs[1], rows), ValueId{}};
}

}  // namespace

const OpDef take_rows_op = {.name = "take_rows", .infer = infer, .backward = backward};

ValueId take_rows(Builder& b, ValueId x, ValueId index) {
  if (b.shape(x).ndim() >= 2) rules::constant_index(b, index, b.shape(x)[1], true, "take_rows");
  return b.emit1(take_rows_op, {x, index});
}

}  // namespace wam
