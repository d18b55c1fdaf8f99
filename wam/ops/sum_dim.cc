#include "wam/ops/sum_dim.h"

#include "wam/ops/broadcast_dim.h"
#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  const TensorType& x = args.inputs[0];
  const int dim = rules::dim(args);
  std::vector<int64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims.erase(dims.begin() + dim);
  return {{x.dtype, Shape(dims)}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const auto dim = static_cast<int>(args.attrs.integer("dim"));
  return {broadcast_dim(args.builder, args.output_grads[0], dim,
                        args.builder.shape(args.inputs[0])[dim])};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  return {static_cast<double>(args.inputs[0].shape.num_elements()),
          static_cast<double>(args.inputs[0].size_bytes() + outputs[0].size_bytes())};
}

}  // namespace

const OpDef sum_dim_op = {
    .name = "sum_dim", .infer = infer, .backward = backward, .cost = cost, .traits = kReduction};

ValueId sum_dim(Builder& b, ValueId x, int dim) {
  return b.emit1(sum_dim_op, {x}, {{"dim", int64_t{rules::normalized_dim(b.shape(x), dim)}}});
}

}  // namespace wam
