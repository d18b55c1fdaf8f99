#include "wam/ops/rope.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::floating(args, 0);
  const Shape& x = args.inputs[0].shape;
  const int64_t heads = args.attrs.integer("heads");
  rules::demand(x.ndim() >= 2 && heads > 0 && x[-1] % (2 * heads) == 0, args,
                "x [..., L, D] with D a multiple of 2 heads");
  rules::dtype(args, 1, rules::grad_dtype(args.inputs[0].dtype));
  rules::shape(args, 1, Shape{x[-2], x[-1] / heads / 2, 2});
  return {args.inputs[0]};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  if (!args.needs_grad[0]) return {{}, {}};
  return {rope(args.builder, args.output_grads[0], args.inputs[1], args.attrs.integer("heads"),
               !args.attrs.flag("inverse")),
          {}};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  OpCost cost;
  cost.flops = 3.0 * static_cast<double>(outputs[0].shape.num_elements());
  cost.bytes = static_cast<double>(2 * outputs[0].size_bytes() + args.inputs[1].size_bytes());
  return cost;
}

}  // namespace

const OpDef rope_op = {
    .name = "rope", .infer = infer, .backward = backward, .cost = cost, .in_place = {{0, 0}}};

ValueId rope(Builder& b, ValueId x, ValueId table, int64_t heads, bool inverse) {
  return b.emit1(rope_op, {x, table}, {{"heads", heads}, {"inverse", inverse}});
}

}  // namespace wam
