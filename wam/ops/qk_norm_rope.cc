#include "wam/ops/qk_norm_rope.h"

#include <string>

#include "wam/ops/concat.h"
#include "wam/ops/op_list.h"
#include "wam/ops/rms_norm.h"
#include "wam/ops/rope.h"
#include "wam/ops/rules.h"
#include "wam/ops/slice.h"

namespace wam {
namespace {

// Inputs from `first` on: x [B, L, parts * D], `normed` weights [D], the table with attribute rope.
void check(const OpArgs& args, size_t first) {
  const int64_t parts = args.attrs.integer("parts"), normed = args.attrs.integer("normed");
  const int64_t heads = args.attrs.integer("heads");
  const bool rope = args.attrs.flag("rope");
  rules::demand(parts >= 1 && normed >= 1 && normed <= parts && heads >= 1, args,
                "attributes parts >= normed >= 1 and heads >= 1");
  const size_t table = first + 1 + static_cast<size_t>(normed);
  rules::count(args, table + (rope ? 1 : 0), table + (rope ? 1 : 0));
  rules::floating(args, first);
  rules::ndim(args, first, 3);
  const Shape& x = args.inputs[first].shape;
  rules::demand(x[2] % (parts * heads) == 0, args, "x [B, L, parts * D], D a multiple of heads");
  const int64_t width = x[2] / parts;
  for (size_t i = first + 1; i < table; ++i) {
    rules::same_dtype(args, i);
    rules::shape(args, i, Shape{width});
  }
  if (!rope) return;
  rules::demand(width % (2 * heads) == 0, args, "an even number of channels a head");
  rules::dtype(args, table, rules::grad_dtype(args.inputs[first].dtype));
  rules::shape(args, table, Shape{x[1], width / heads / 2, 2});
}

std::vector<TensorType> infer(const OpArgs& args) {
  check(args, 0);
  return {args.inputs[0]};
}

std::vector<TensorType> infer_grad(const OpArgs& args) {
  rules::count(args, 3, 16);
  const size_t x = args.attrs.flag("two_grads") ? 2 : 1;
  check(args, x);
  for (size_t i = 0; i < x; ++i) {
    rules::demand(args.inputs[i] == args.inputs[x], args, "dy of x's type");
  }
  std::vector<TensorType> outputs = {args.inputs[x]};
  const int64_t width = args.inputs[x].shape[2];
  const DType st = rules::grad_dtype(args.inputs[x].dtype);
  for (int64_t i = 0; i < args.attrs.integer("normed"); ++i) {
    outputs.push_back({st, Shape{width / args.attrs.integer("parts")}});
  }
  if (args.attrs.flag("bias_grad")) outputs.push_back({st, Shape{width}});
  return outputs;
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  std::vector<ValueId> inputs = {args.output_grads[0]};
  inputs.insert(inputs.end(), args.inputs.begin(), args.inputs.end());
  std::vector<ValueId> grads = args.builder.emit(qk_norm_rope_grad_op, inputs, args.attrs);
  if (args.attrs.flag("rope")) grads.emplace_back();  // the table is a constant
  return grads;
}

std::vector<ValueId> decompose(Builder& b, std::span<const ValueId> inputs, const Attrs& attrs) {
  const int64_t parts = attrs.integer("parts"), normed = attrs.integer("normed");
  const int64_t width = b.shape(inputs[0])[2] / parts;
  std::vector<ValueId> results;
  for (int64_t part = 0; part < normed; ++part) {
    const ValueId x = slice(b, inputs[0], 2, part * width, (part + 1) * width);
    ValueId y = rms_norm(b, x, inputs[static_cast<size_t>(part) + 1], attrs.real("eps"));
    if (attrs.flag("rope")) y = rope(b, y, inputs.back(), attrs.integer("heads"));
    results.push_back(y);
  }
  if (normed < parts) results.push_back(slice(b, inputs[0], 2, normed * width, parts * width));
  return {concat(b, results, 2)};
}

// Normalised channels: square, sum, two products; rotated ones: two products and a sum each.
OpCost forward_cost(const OpArgs& args, std::span<const TensorType> outputs) {
  const double rows = static_cast<double>(outputs[0].shape.num_rows());
  const double normed = static_cast<double>(args.attrs.integer("normed")) *
                        static_cast<double>(outputs[0].shape[-1]) /
                        static_cast<double>(args.attrs.integer("parts"));
  OpCost cost;
  cost.flops = rows * normed * (args.attrs.flag("rope") ? 7.0 : 4.0);
  for (const TensorType& type : args.inputs) cost.bytes += static_cast<double>(type.size_bytes());
  for (const TensorType& type : outputs) cost.bytes += static_cast<double>(type.size_bytes());
  return cost;
}

OpCost grad_cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost = forward_cost(args, outputs);
  cost.flops *= 2.5;
  return cost;
}

}  // namespace

const OpDef qk_norm_rope_op = {.name = "qk_norm_rope",
                               .infer = infer,
                               .backward = backward,
                               .decompose = decompose,
                               .cost = forward_cost,
                               .in_place = {{0, 0}},
                               .traits = kReduction};
const OpDef qk_norm_rope_grad_op = {.name = "qk_norm_rope_grad",
                                    .infer = infer_grad,
                                    .cost = grad_cost,
                                    .in_place = {{0, 0}},
                                    .traits = kReduction};

ValueId qk_norm_rope(Builder& b, ValueId x, std::span<const ValueId> weights, ValueId table,
                     const QkNormRope& options) {
  std::vector<ValueId> inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  if (table.valid()) inputs.push_back(table);
  return b
      .emit(qk_norm_rope_op, inputs,
            {{"parts", options.parts},
             {"normed", static_cast<int64_t>(weights.size())},
             {"rope", table.valid()},
             {"eps", options.eps},
             {"heads", options.heads}})
      .front();
}

}  // namespace wam
