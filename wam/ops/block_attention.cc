#include "wam/ops/block_attention.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

// Checks input i as qkv [B, L, 3 D] and the attributes; gives o's type.
TensorType out_type(const OpArgs& args, size_t i) {
  rules::floating(args, i);
  rules::ndim(args, i, 3);
  const Shape& qkv = args.inputs[i].shape;
  const int64_t heads = args.attrs.integer("heads");
  rules::demand(heads > 0 && qkv[2] % (3 * heads) == 0, args, "qkv [B, L, 3 * heads * d]");
  parse_rects(args.attrs.integers("rects"), qkv[1]);
  return {args.inputs[i].dtype, Shape{qkv[0], qkv[1], qkv[2] / 3}};
}

TensorType lse_type(const OpArgs& args, const TensorType& out) {
  return {rules::grad_dtype(out.dtype),
          Shape{out.shape[0], args.attrs.integer("heads"), out.shape[1]}};
}

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const TensorType out = out_type(args, 0);
  return {out, lse_type(args, out)};
}

std::vector<TensorType> infer_grad(const OpArgs& args) {
  rules::count(args, 4, 4);
  const TensorType out = out_type(args, 3);
  rules::demand(args.inputs[0] == out && args.inputs[1] == out, args, "do and o of o's type");
  rules::demand(args.inputs[2] == lse_type(args, out), args,
                "lse [B, H, L] of the statistics type");
  return {args.inputs[3]};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  rules::no_output_gradient(args, 1, "block_attention");
  return {args.builder.emit1(
      block_attention_grad_op,
      {args.output_grads[0], args.outputs[0], args.outputs[1], args.inputs[0]}, args.attrs)};
}

OpCost pair_cost(const OpArgs& args, std::span<const TensorType> outputs, double products) {
  const Shape& out = args.inputs.size() == 1 ? outputs[0].shape : args.inputs[0].shape;
  const double pairs =
      static_cast<double>(num_pairs(parse_rects(args.attrs.integers("rects"), out[1])));
  OpCost cost;
  cost.flops = 2.0 * products * static_cast<double>(out[0]) * static_cast<double>(out[2]) * pairs;
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  return pair_cost(args, outputs, 2);
}
// Scores again, dP, dQ, dK, dV.
OpCost grad_cost(const OpArgs& args, std::span<const TensorType> outputs) {
  return pair_cost(args, outputs, 5);
}

}  // namespace

const OpDef block_attention_op = {.name = "block_attention",
                                  .infer = infer,
                                  .backward = backward,
                                  .cost = cost,
                                  .traits = kMatrix};
const OpDef block_attention_grad_op = {
    .name = "block_attention_grad", .infer = infer_grad, .cost = grad_cost, .traits = kMatrix};

AttentionResult block_attention(Builder& b, ValueId qkv, int64_t heads, double scale,
                                std::span<const AttentionRect> rects) {
  const std::vector<ValueId> outputs = b.emit(
      block_attention_op, {qkv}, {{"heads", heads}, {"scale", scale}, {"rects", flatten(rects)}});
  return {outputs[0], outputs[1]};
}

}  // namespace wam
