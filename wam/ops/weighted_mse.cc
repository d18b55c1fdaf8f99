#include "wam/ops/weighted_mse.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Inputs from `first` on: pred, target, row_weight, index and perhaps mask. Gives st.
DType check(const OpArgs& args, size_t first) {
  rules::count(args, first + 4, first + 5);
  rules::floating(args, first);
  rules::ndim(args, first, 3);
  const TensorType& pred = args.inputs[first];
  const DType st = rules::grad_dtype(pred.dtype);
  const TensorType& target = args.inputs[first + 1];
  rules::demand(target.shape == pred.shape && (target.dtype == pred.dtype || target.dtype == st),
                args, "target of pred's shape, and of its type or of the statistics type");
  const Shape& weight = args.inputs[first + 2].shape;
  rules::demand(
      args.inputs[first + 2].dtype == st && weight.ndim() == 2 && weight[0] == pred.shape[0], args,
      "row_weight [B, T] of the statistics type");
  rules::dtype(args, first + 3, DType::kI32);
  rules::shape(args, first + 3, Shape{pred.shape[1]});
  if (args.inputs.size() == first + 5) {
    rules::demand(args.inputs[first + 4] == TensorType{st, pred.shape}, args,
                  "mask of pred's shape and the statistics type");
  }
  args.attrs.real("scale");
  return st;
}

std::vector<TensorType> infer(const OpArgs& args) { return {{check(args, 0), Shape{}}}; }

std::vector<TensorType> infer_grad(const OpArgs& args) {
  rules::count(args, 5, 6);
  const DType st = check(args, 1);
  rules::demand(args.inputs[0] == TensorType{st, Shape{}}, args, "dloss a scalar of st");
  return {args.inputs[1]};
}

WeightedMse inputs_of(std::span<const ValueId> ids) {
  return {ids[0], ids[1], ids[2], ids[3], ids.size() == 5 ? ids[4] : ValueId{}};
}

std::vector<ValueId> ids_of(const WeightedMse& inputs) {
  std::vector<ValueId> ids = {inputs.pred, inputs.target, inputs.row_weight, inputs.index};
  if (inputs.mask.valid()) ids.push_back(inputs.mask);
  return ids;
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  for (size_t i = 1; i < args.inputs.size(); ++i) rules::no_gradient(args, i, "weighted_mse");
  std::vector<ValueId> grads(args.inputs.size());
  grads[0] = weighted_mse_grad(args.builder, args.output_grads[0], inputs_of(args.inputs),
                               args.attrs.real("scale"));
  return grads;
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  const size_t pred = args.inputs[0].shape.ndim() == 0 ? 1 : 0;
  OpCost cost{4.0 * static_cast<double>(args.inputs[pred].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

}  // namespace

const OpDef weighted_mse_op = {.name = "weighted_mse",
                               .infer = infer,
                               .backward = backward,
                               .cost = cost,
                               .traits = kReduction};
const OpDef weighted_mse_grad_op = {
    .name = "weighted_mse_grad", .infer = infer_grad, .cost = cost, .in_place = {{0, 1}}};

ValueId weighted_mse(Builder& b, const WeightedMse& inputs, double scale) {
  const auto outputs = b.emit(weighted_mse_op, ids_of(inputs), {{"scale", scale}});
  rules::constant_index(b, inputs.index, b.shape(inputs.row_weight)[1], false, "weighted_mse");
  return outputs[0];
}

ValueId weighted_mse_grad(Builder& b, ValueId dloss, const WeightedMse& inputs, double scale) {
  std::vector<ValueId> ids = ids_of(inputs);
  ids.insert(ids.begin(), dloss);
  return b.emit(weighted_mse_grad_op, ids, {{"scale", scale}}).front();
}

}  // namespace wam
