#include "wam/ops/lerp_rows.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Inputs x, noise, sigma, index.
std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 4, 4);
  rules::floating(args, 0);
  rules::ndim(args, 0, 3);
  const TensorType& x = args.inputs[0];
  rules::demand(args.inputs[1] == x, args, "noise of x's type");
  rules::stat(args, 2);
  rules::ndim(args, 2, 2);
  rules::shape(args, 2, Shape{x.shape[0], args.inputs[2].shape[1]});
  rules::dtype(args, 3, DType::kI32);
  rules::shape(args, 3, Shape{x.shape[1]});
  return {x};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost{3.0 * static_cast<double>(outputs[0].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  cost.bytes += static_cast<double>(outputs[0].size_bytes());
  return cost;
}

}  // namespace

const OpDef lerp_rows_op = {.name = "lerp_rows",
                            .infer = infer,
                            .cost = cost,
                            .in_place = {{0, 0}, {0, 1}},
                            .traits = kNotDifferentiable};

ValueId lerp_rows(Builder& b, ValueId x, ValueId noise, ValueId sigma, ValueId index) {
  const auto outputs = b.emit(lerp_rows_op, {x, noise, sigma, index});
  rules::constant_index(b, index, b.shape(sigma)[1], false, "lerp_rows");
  return outputs[0];
}

}  // namespace wam
