#include "wam/ops/concat.h"

#include <limits>

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/slice.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, std::numeric_limits<size_t>::max());
  const int dim = rules::dim(args);
  const TensorType& first = args.inputs[0];
  int64_t size = 0;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    rules::same_dtype(args, i);
    rules::ndim(args, i, first.shape.ndim());
    const int64_t part = args.inputs[i].shape[dim];
    rules::shape(args, i, rules::with_dim(first.shape, dim, part));
    size += part;
  }
  return {{first.dtype, rules::with_dim(first.shape, dim, size)}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const auto dim = static_cast<int>(args.attrs.integer("dim"));
  std::vector<ValueId> grads(args.inputs.size());
  int64_t begin = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    const int64_t end = begin + args.builder.shape(args.inputs[i])[dim];
    if (args.needs_grad[i]) grads[i] = slice(args.builder, args.output_grads[0], dim, begin, end);
    begin = end;
  }
  return grads;
}

}  // namespace

const OpDef concat_op = {.name = "concat", .infer = infer, .backward = backward};

ValueId concat(Builder& b, std::span<const ValueId> parts, int dim) {
  if (parts.size() == 1) return parts[0];
  if (!parts.empty()) dim = rules::normalized_dim(b.shape(parts[0]), dim);
  return b.emit(concat_op, parts, {{"dim", int64_t{dim}}}).front();
}

}  // namespace wam
