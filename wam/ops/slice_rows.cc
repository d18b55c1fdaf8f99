#include "wam/ops/slice_rows.h"

#include "wam/ops/op_list.h"
#include "wam/ops/pad_zeros.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const TensorType& x = args.inputs[0];
  const int dim = rules::dim(args);
  const int64_t begin = args.attrs.integer("begin"), end = args.attrs.integer("end");
  rules::demand(0 <= begin && begin <= end && end <= x.shape[dim], args,
                "attributes 0 <= begin <= end <= size of the dim");
  for (int i = 0; i < dim; ++i) rules::demand(x.shape[i] == 1, args, "only ones before the dim");
  return {{x.dtype, rules::with_dim(x.shape, dim, end - begin)}};
}

int64_t view_offset(const OpArgs& args) {
  const TensorType& x = args.inputs[0];
  int64_t bytes = size_bytes(x.dtype);
  for (int i = rules::dim(args) + 1; i < x.shape.ndim(); ++i) bytes *= x.shape[i];
  return bytes * args.attrs.integer("begin");
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const auto dim = static_cast<int>(args.attrs.integer("dim"));
  const int64_t size = args.builder.shape(args.inputs[0])[dim];
  return {pad_zeros(args.builder, args.output_grads[0], dim, args.attrs.integer("begin"),
                    size - args.attrs.integer("end"))};
}

}  // namespace

const OpDef slice_rows_op = {.name = "slice_rows",
                             .infer = infer,
                             .backward = backward,
                             .view_offset = view_offset,
                             .traits = kView};

ValueId slice_rows(Builder& b, ValueId x, int dim, int64_t begin, int64_t end) {
  return b.emit1(slice_rows_op, {x}, {{"dim", int64_t{dim}}, {"begin", begin}, {"end", end}});
}

}  // namespace wam
