#include "wam/ops/linear_gelu.h"

#include "wam/ops/add.h"
#include "wam/ops/gelu_tanh.h"
#include "wam/ops/linear.h"
#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  const TensorType y = linear_op.infer(args).front();
  return {y, y};
}

std::vector<ValueId> decompose(Builder& b, std::span<const ValueId> inputs, const Attrs& attrs) {
  const ValueId bias = inputs.size() == 3 ? inputs[2] : ValueId{};
  const ValueId pre = linear(b, inputs[0], inputs[1], bias, attrs.flag("kn"));
  return {gelu_tanh(b, pre), pre};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  Builder& b = args.builder;
  const bool kn = args.attrs.flag("kn"), has_bias = args.inputs.size() == 3;
  ValueId dpre = args.output_grads[1];
  if (args.output_grads[0].valid()) {
    const ValueId through = gelu_tanh_grad(b, args.output_grads[0], args.outputs[1]);
    dpre = dpre.valid() ? add(b, dpre, through) : through;
  }
  std::vector<ValueId> grads(args.inputs.size());
  if (args.needs_grad[0]) grads[0] = linear_dgrad(b, dpre, args.inputs[1], kn);
  const bool bias_grad = has_bias && args.needs_grad[2];
  if (args.needs_grad[1] || bias_grad) {
    const LinearWgrad wgrad = linear_wgrad(b, dpre, args.inputs[0], bias_grad, kn);
    grads[1] = wgrad.weight;
    if (has_bias) grads[2] = wgrad.bias;
  }
  return grads;
}

ValueId rematerialise(Builder& b, const RematerialiseArgs& args) {
  if (args.output != 0 || !args.outputs[1].valid()) return {};
  return gelu_tanh(b, args.outputs[1]);
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost = cost_of(linear_op, args, outputs);
  cost.flops += 10.0 * static_cast<double>(outputs[0].shape.num_elements());
  return cost;
}

}  // namespace

const OpDef linear_gelu_op = {.name = "linear_gelu",
                              .infer = infer,
                              .backward = backward,
                              .decompose = decompose,
                              .cost = cost,
                              .rematerialise = rematerialise,
                              .traits = kMatrix};

LinearGelu linear_gelu(Builder& b, ValueId x, ValueId weight, ValueId bias, bool kn) {
  const Attrs attrs{{"kn", kn}};
  const auto outputs = bias.valid() ? b.emit(linear_gelu_op, {x, weight, bias}, attrs)
                                    : b.emit(linear_gelu_op, {x, weight}, attrs);
  return {outputs[0], outputs[1]};
}

}  // namespace wam
