#include "wam/ops/broadcast_dim.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/sum_dim.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const TensorType& x = args.inputs[0];
  const int64_t dim = args.attrs.integer("dim"), size = args.attrs.integer("size");
  rules::demand(dim >= 0 && dim <= x.shape.ndim(), args, "attribute 'dim' a place among the dims");
  std::vector<int64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims.insert(dims.begin() + dim, size);
  return {{x.dtype, Shape(dims)}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const auto dim = static_cast<int>(args.attrs.integer("dim"));
  return {sum_dim(args.builder, args.output_grads[0], dim)};
}

}  // namespace

const OpDef broadcast_dim_op = {.name = "broadcast_dim", .infer = infer, .backward = backward};

ValueId broadcast_dim(Builder& b, ValueId x, int dim, int64_t size) {
  return b.emit1(broadcast_dim_op, {x}, {{"dim", int64_t{dim}}, {"size", size}});
}

}  // namespace wam
