#include "wam/ops/linear.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// N and K of the weight (input 1).
struct WeightSize {
  int64_t n, k;
};
WeightSize weight_size(const OpArgs& args) {
  rules::ndim(args, 1, 2);
  const Shape& shape = args.inputs[1].shape;
  return args.attrs.flag("kn") ? WeightSize{shape[1], shape[0]} : WeightSize{shape[0], shape[1]};
}

OpCost matrix_cost(const OpArgs& args, std::span<const TensorType> outputs, int64_t n, int64_t k) {
  OpCost cost;
  const int64_t rows = args.inputs[0].shape.num_rows();
  cost.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

std::vector<TensorType> infer_linear(const OpArgs& args) {
  rules::count(args, 2, 3);
  rules::floating(args, 0);
  rules::same_dtype(args, 1);
  const auto [n, k] = weight_size(args);
  rules::demand(args.inputs[0].shape.ndim() >= 1 && args.inputs[0].shape[-1] == k, args,
                "the last dim of x equal to the weight's K = " + std::to_string(k));
  if (args.inputs.size() == 3) {
    rules::same_dtype(args, 2);
    rules::shape(args, 2, Shape{n});
  }
  return {{args.inputs[0].dtype, rules::with_last(args.inputs[0].shape, n)}};
}

std::vector<ValueId> backward_linear(const BackwardArgs& args) {
  const bool kn = args.attrs.flag("kn");
  const bool has_bias = args.inputs.size() == 3;
  const ValueId dy = args.output_grads[0];
  std::vector<ValueId> grads(args.inputs.size());
  if (args.needs_grad[0]) grads[0] = linear_dgrad(args.builder, dy, args.inputs[1], kn);
  const bool bias_grad = has_bias && args.needs_grad[2];
  if (args.needs_grad[1] || bias_grad) {
    const LinearWgrad wgrad = linear_wgrad(args.builder, dy, args.inputs[0], bias_grad, kn);
    grads[1] = wgrad.weight;
    if (has_bias) grads[2] = wgrad.bias;
  }
  return grads;
}

OpCost cost_linear(const OpArgs& args, std::span<const TensorType> outputs) {
  const auto [n, k] = weight_size(args);
  return matrix_cost(args, outputs, n, k);
}

std::vector<TensorType> infer_dgrad(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::floating(args, 0);
  rules::same_dtype(args, 1);
  const auto [n, k] = weight_size(args);
  rules::demand(args.inputs[0].shape.ndim() >= 1 && args.inputs[0].shape[-1] == n, args,
                "the last dim of dy equal to the weight's N = " + std::to_string(n));
  return {{args.inputs[0].dtype, rules::with_last(args.inputs[0].shape, k)}};
}

// Inputs dy [..., N], x [..., K] and, with attribute `accumulate`, the sums so far to add to:
// the weight's and, with `bias`, the bias's. Outputs may be written in their place.
std::vector<TensorType> infer_wgrad(const OpArgs& args) {
  const bool has_bias = args.attrs.flag("bias");
  const bool accumulate = args.attrs.flag("accumulate");
  const size_t inputs = accumulate ? (has_bias ? 4 : 3) : 2;
  rules::count(args, inputs, inputs);
  rules::floating(args, 0);
  rules::same_dtype(args, 1);
  const Shape &dy = args.inputs[0].shape, &x = args.inputs[1].shape;
  rules::demand(dy.ndim() >= 1 && x.ndim() >= 1 && dy.num_rows() == x.num_rows(), args,
                "as many rows in dy as in x");
  const DType dtype = parse_dtype(args.attrs.text("dtype"));
  const bool kn = args.attrs.flag("kn");
  std::vector<TensorType> outputs = {{dtype, kn ? Shape{x[-1], dy[-1]} : Shape{dy[-1], x[-1]}}};
  if (has_bias) outputs.push_back({dtype, Shape{dy[-1]}});
  for (size_t i = 2; i < inputs; ++i) {
    rules::demand(args.inputs[i] == outputs[i - 2], args, "accumulators of the outputs' types");
  }
  return outputs;
}

OpCost cost_wgrad(const OpArgs& args, std::span<const TensorType> outputs) {
  return matrix_cost(args, outputs, args.inputs[0].shape[-1], args.inputs[1].shape[-1]);
}

}  // namespace

const OpDef linear_op = {.name = "linear",
                         .infer = infer_linear,
                         .backward = backward_linear,
                         .cost = cost_linear,
                         .traits = kMatrix};
const OpDef linear_dgrad_op = {
    .name = "linear_dgrad", .infer = infer_dgrad, .cost = cost_linear, .traits = kMatrix};
const OpDef linear_wgrad_op = {.name = "linear_wgrad",
                               .infer = infer_wgrad,
                               .cost = cost_wgrad,
                               .in_place = {{0, 2}, {1, 3}},
                               .traits = kMatrix};

ValueId linear(Builder& b, ValueId x, ValueId weight, ValueId bias, bool kn) {
  const Attrs attrs{{"kn", kn}};
  return bias.valid() ? b.emit1(linear_op, {x, weight, bias}, attrs)
                      : b.emit1(linear_op, {x, weight}, attrs);
}

ValueId linear_dgrad(Builder& b, ValueId dy, ValueId weight, bool kn) {
  return b.emit1(linear_dgrad_op, {dy, weight}, {{"kn", kn}});
}

LinearWgrad linear_wgrad(Builder& b, ValueId dy, ValueId x, bool has_bias, bool kn) {
  const std::string dtype(name(rules::grad_dtype(b.dtype(dy))));
  const std::vector<ValueId> outputs =
      b.emit(linear_wgrad_op, {dy, x}, {{"bias", has_bias}, {"dtype", dtype}, {"kn", kn}});
  return {outputs[0], has_bias ? outputs[1] : ValueId{}};
}

}  // namespace wam
