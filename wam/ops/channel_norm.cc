#include "wam/ops/channel_norm.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::floating(args, 0);
  rules::same_dtype(args, 1);
  rules::demand(args.inputs[0].shape.ndim() >= 1, args, "x [..., C]");
  rules::shape(args, 1, Shape{args.inputs[0].shape[-1]});
  return {args.inputs[0]};
}

}  // namespace

const OpDef channel_norm_op = {
    .name = "channel_norm", .infer = infer, .in_place = {{0, 0}}, .traits = kReduction};

ValueId channel_norm(Builder& b, ValueId x, ValueId gamma, bool silu) {
  return b.emit1(channel_norm_op, {x, gamma}, {{"silu", silu}});
}

}  // namespace wam
