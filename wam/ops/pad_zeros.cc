#include "wam/ops/pad_zeros.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/slice.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const TensorType& x = args.inputs[0];
  const int dim = rules::dim(args);
  const int64_t before = args.attrs.integer("before"), after = args.attrs.integer("after");
  rules::demand(before >= 0 && after >= 0, args, "attributes before, after >= 0");
  return {{x.dtype, rules::with_dim(x.shape, dim, before + x.shape[dim] + after)}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const auto dim = static_cast<int>(args.attrs.integer("dim"));
  const int64_t before = args.attrs.integer("before");
  const int64_t size = args.builder.shape(args.inputs[0])[dim];
  return {slice(args.builder, args.output_grads[0], dim, before, before + size)};
}

}  // namespace

const OpDef pad_zeros_op = {.name = "pad_zeros", .infer = infer, .backward = backward};

ValueId pad_zeros(Builder& b, ValueId x, int dim, int64_t before, int64_t after) {
  dim = rules::normalized_dim(b.shape(x), dim);
  if (before == 0 && after == 0) return x;
  return b.emit1(pad_zeros_op, {x}, {{"dim", int64_t{dim}}, {"before", before}, {"after", after}});
}

}  // namespace wam
