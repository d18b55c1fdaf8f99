#include "wam/ops/patchify.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"
#include "wam/ops/unpatchify.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  rules::ndim(args, 0, 5);
  const std::string& order = args.attrs.text("order");
  rules::demand(order == "channel_first" || order == "channel_last", args,
                "attribute 'order' channel_first or channel_last");
  const DType dtype = parse_dtype(args.attrs.text("dtype"));
  rules::demand(is_floating(dtype), args, "attribute 'dtype' a floating type");
  const Shape& x = args.inputs[0].shape;
  return {{dtype, Shape{x[0], x[1] * (x[2] / 2) * (x[3] / 2), 4 * x[4]}}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const TensorType x = args.builder.type(args.inputs[0]);
  const bool first = args.attrs.text("order") == "channel_first";
  return {unpatchify(args.builder, args.output_grads[0], {x.shape[1], x.shape[2], x.shape[3]},
                     first ? PatchOrder::kChannelFirst : PatchOrder::kChannelLast, x.dtype)};
}

}  // namespace

const OpDef patchify_op = {.name = "patchify", .infer = infer, .backward = backward};

ValueId patchify(Builder& b, ValueId x, PatchOrder order, DType dtype) {
  const std::string text = order == PatchOrder::kChannelFirst ? "channel_first" : "channel_last";
  return b.emit1(patchify_op, {x}, {{"dtype", std::string(name(dtype))}, {"order", text}});
}

}  // namespace wam
