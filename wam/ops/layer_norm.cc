#include "wam/ops/layer_norm.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

Shape stats_shape(const Shape& x) { return Shape{x.num_rows(), 2}; }

std::vector<TensorType> infer(const OpArgs& args) {
  const bool affine = args.attrs.flag("affine");
  rules::count(args, affine ? 3 : 1, affine ? 3 : 1);
  rules::floating(args, 0);
  const TensorType& x = args.inputs[0];
  rules::demand(x.shape.ndim() >= 1, args, "x with at least one dim");
  rules::demand(args.attrs.real("eps") >= 0, args, "attribute eps >= 0");
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    rules::same_dtype(args, i);
    rules::shape(args, i, Shape{x.shape[-1]});
  }
  return {x, {rules::grad_dtype(x.dtype), stats_shape(x.shape)}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  rules::no_output_gradient(args, 1, "layer_norm");
  const bool affine = args.attrs.flag("affine");
  const LayerNormGrad grad = layer_norm_grad(args.builder, args.output_grads[0], args.inputs[0],
                                             args.outputs[1], affine ? args.inputs[1] : ValueId{});
  if (!affine) return {grad.x};
  return {grad.x, grad.weight, grad.bias};
}

// Inputs dy, x, stats and, if affine, the weight.
std::vector<TensorType> infer_grad(const OpArgs& args) {
  const bool affine = args.attrs.flag("affine");
  rules::count(args, affine ? 4 : 3, affine ? 4 : 3);
  rules::floating(args, 0);
  const TensorType& x = args.inputs[1];
  rules::demand(args.inputs[0] == x, args, "dy of x's type");
  rules::demand(x.shape.ndim() >= 1, args, "x with at least one dim");
  rules::stat(args, 2);
  rules::shape(args, 2, stats_shape(x.shape));
  if (!affine) return {x};
  rules::same_dtype(args, 3);
  const Shape weight{x.shape[-1]};
  rules::shape(args, 3, weight);
  const DType dtype = rules::grad_dtype(x.dtype);
  return {x, {dtype, weight}, {dtype, weight}};
}

template <int kFlopsPerElement>
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost{kFlopsPerElement * static_cast<double>(outputs[0].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

}  // namespace

const OpDef layer_norm_op = {.name = "layer_norm",
                             .infer = infer,
                             .backward = backward,
                             .cost = cost<8>,
                             .in_place = {{0, 0}},
                             .traits = kReduction};
const OpDef layer_norm_grad_op = {.name = "layer_norm_grad",
                                  .infer = infer_grad,
                                  .cost = cost<14>,
                                  .in_place = {{0, 0}, {0, 1}},
                                  .traits = kReduction};

LayerNorm layer_norm(Builder& b, ValueId x, double eps, ValueId weight, ValueId bias) {
  std::vector<ValueId> inputs = {x};
  if (weight.valid()) inputs.insert(inputs.end(), {weight, bias});
  const auto outputs = b.emit(layer_norm_op, inputs, {{"affine", weight.valid()}, {"eps", eps}});
  return {outputs[0], outputs[1]};
}

LayerNormGrad layer_norm_grad(Builder& b, ValueId dy, ValueId x, ValueId stats, ValueId weight) {
  std::vector<ValueId> inputs = {dy, x, stats};
  if (weight.valid()) inputs.push_back(weight);
  const auto outputs = b.emit(layer_norm_grad_op, inputs, {{"affine", weight.valid()}});
  if (!weight.valid()) return {outputs[0], {}, {}};
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace wam
