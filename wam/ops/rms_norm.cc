#include "wam/ops/rms_norm.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// x [..., D] and weight [D] are inputs `first` and the next.
void check(const OpArgs& args, size_t first) {
  rules::count(args, first + 2, first + 2);
  rules::floating(args, first);
  const TensorType& x = args.inputs[first];
  rules::demand(x.shape.ndim() >= 1, args, "x with at least one dim");
  rules::demand(args.inputs[first + 1] == TensorType{x.dtype, Shape{x.shape[-1]}}, args,
                "a weight [D] of x's dtype");
  rules::demand(args.attrs.real("eps") >= 0, args, "attribute eps >= 0");
}

std::vector<TensorType> infer(const OpArgs& args) {
  check(args, 0);
  return {args.inputs[0]};
}

std::vector<TensorType> infer_grad(const OpArgs& args) {
  check(args, 1);
  const TensorType& x = args.inputs[1];
  rules::demand(args.inputs[0] == x, args, "dy of x's type");
  return {x, {rules::grad_dtype(x.dtype), Shape{x.shape[-1]}}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const RmsNormGrad grad = rms_norm_grad(args.builder, args.output_grads[0], args.inputs[0],
                                         args.inputs[1], args.attrs.real("eps"));
  return {grad.x, grad.weight};
}

template <int kFlopsPerElement>
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost{kFlopsPerElement * static_cast<double>(outputs[0].shape.num_elements()), 0};
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

}  // namespace

const OpDef rms_norm_op = {.name = "rms_norm",
                           .infer = infer,
                           .backward = backward,
                           .cost = cost<4>,
                           .in_place = {{0, 0}},
                           .traits = kReduction};
const OpDef rms_norm_grad_op = {.name = "rms_norm_grad",
                                .infer = infer_grad,
                                .cost = cost<11>,
                                .in_place = {{0, 0}, {0, 1}},
                                .traits = kReduction};

ValueId rms_norm(Builder& b, ValueId x, ValueId weight, double eps) {
  return b.emit1(rms_norm_op, {x, weight}, {{"eps", eps}});
}

RmsNormGrad rms_norm_grad(Builder& b, ValueId dy, ValueId x, ValueId weight, double eps) {
  const auto outputs = b.emit(rms_norm_grad_op, {dy, x, weight}, {{"eps", eps}});
  return {outputs[0], outputs[1]};
}

}  // namespace wam
