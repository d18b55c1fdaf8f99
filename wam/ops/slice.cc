#include "wam/ops/slice.h"

#include "wam/ops/op_list.h"
#include "wam/ops/pad_zeros.h"
#include "wam/ops/rules.h"
#include "wam/ops/slice_rows.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const TensorType& x = args.inputs[0];
  const int dim = rules::dim(args);
  const int64_t begin = args.attrs.integer("begin"), end = args.attrs.integer("end");
  rules::demand(0 <= begin && begin <= end && end <= x.shape[dim], args,
                "attributes 0 <= begin <= end <= size of the dim");
  return {{x.dtype, rules::with_dim(x.shape, dim, end - begin)}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const auto dim = static_cast<int>(args.attrs.integer("dim"));
  const int64_t size = args.builder.shape(args.inputs[0])[dim];
  return {pad_zeros(args.builder, args.output_grads[0], dim, args.attrs.integer("begin"),
                    size - args.attrs.integer("end"))};
}

}  // namespace

const OpDef slice_op = {.name = "slice", .infer = infer, .backward = backward};

ValueId slice(Builder& b, ValueId x, int dim, int64_t begin, int64_t end) {
  const Shape& shape = b.shape(x);
  dim = rules::normalized_dim(shape, dim);
  if (begin == 0 && end == shape[dim]) return x;
  int64_t before = 1;
  for (int i = 0; i < dim; ++i) before *= shape[i];
  if (before == 1) return slice_rows(b, x, dim, begin, end);
  return b.emit1(slice_op, {x}, {{"dim", int64_t{dim}}, {"begin", begin}, {"end", end}});
}

}  // namespace wam
