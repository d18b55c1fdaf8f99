#include "wam/ops/attention.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Checks inputs from `first` on: q, kv, (key bias), (pair bias).
void check(const OpArgs& args, size_t first) {
  const bool key_bias = args.attrs.flag("key_bias"), pair_bias = args.attrs.flag("pair_bias");
  const size_t inputs = first + 2 + (key_bias ? 1 : 0) + (pair_bias ? 1 : 0);
  rules::count(args, inputs, inputs);
  rules::floating(args, first);
  rules::dtype(args, first + 1, args.inputs[first].dtype);
  rules::ndim(args, first, 3);
  rules::ndim(args, first + 1, 3);
  const Shape &q = args.inputs[first].shape, &kv = args.inputs[first + 1].shape;
  const int64_t heads = args.attrs.integer("heads");
  rules::demand(heads > 0 && q[2] % heads == 0 && kv[2] == 2 * q[2] && kv[0] == q[0] && kv[1] > 0,
                args, "q [B, Lq, heads * d], kv [B, Lk, 2 * heads * d], Lk > 0");
  const DType dtype = rules::grad_dtype(args.inputs[first].dtype);
  size_t at = first + 2;
  if (key_bias) {
    rules::dtype(args, at, dtype);
    const Shape& bias = args.inputs[at].shape;
    rules::demand(bias == Shape{kv[1]} || bias == Shape{kv[0], kv[1]}, args,
                  "key bias [Lk] or [B, Lk]");
    ++at;
  }
  if (pair_bias) {
    rules::dtype(args, at, dtype);
    rules::shape(args, at, Shape{heads, q[1], kv[1]});
  }
}

TensorType lse_type(const OpArgs& args, const TensorType& q) {
  return {rules::grad_dtype(q.dtype), Shape{q.shape[0], args.attrs.integer("heads"), q.shape[1]}};
}

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 4);
  check(args, 0);
  return {args.inputs[0], lse_type(args, args.inputs[0])};
}

std::vector<TensorType> infer_grad(const OpArgs& args) {
  rules::count(args, 5, 7);
  check(args, 3);
  const TensorType& q = args.inputs[3];
  rules::demand(args.inputs[0] == q && args.inputs[1] == q, args, "do and o of q's type");
  rules::demand(args.inputs[2] == lse_type(args, q), args, "lse [B, H, Lq] of the statistics type");
  return {q, args.inputs[4]};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  rules::no_output_gradient(args, 1, "attention");
  std::vector<ValueId> inputs = {args.output_grads[0], args.outputs[0], args.outputs[1]};
  inputs.insert(inputs.end(), args.inputs.begin(), args.inputs.end());
  std::vector<ValueId> grads = args.builder.emit(attention_grad_op, inputs, args.attrs);
  grads.resize(args.inputs.size());  // none for the biases
  return grads;
}

OpCost pair_cost(const OpArgs& args, std::span<const TensorType> outputs, size_t first,
                 double products) {
  const Shape &q = args.inputs[first].shape, &kv = args.inputs[first + 1].shape;
  OpCost cost;
  cost.flops = 2.0 * products * static_cast<double>(q.num_elements()) * static_cast<double>(kv[1]);
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  return pair_cost(args, outputs, 0, 2);
}
// Scores again, dP, dQ, dK, dV.
OpCost grad_cost(const OpArgs& args, std::span<const TensorType> outputs) {
  return pair_cost(args, outputs, 3, 5);
}

}  // namespace

const OpDef attention_op = {
    .name = "attention", .infer = infer, .backward = backward, .cost = cost, .traits = kMatrix};
const OpDef attention_grad_op = {
    .name = "attention_grad", .infer = infer_grad, .cost = grad_cost, .traits = kMatrix};

AttentionResult attention(Builder& b, ValueId q, ValueId kv, const Attention& options) {
  std::vector<ValueId> inputs = {q, kv};
  if (options.key_bias.valid()) inputs.push_back(options.key_bias);
  if (options.pair_bias.valid()) inputs.push_back(options.pair_bias);
  const std::vector<ValueId> outputs = b.emit(attention_op, inputs,
                                              {{"heads", options.heads},
                                               {"scale", options.scale},
                                               {"key_bias", options.key_bias.valid()},
                                               {"pair_bias", options.pair_bias.valid()}});
  return {outputs[0], outputs[1]};
}

}  // namespace wam
