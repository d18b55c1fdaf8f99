#include "wam/ops/unpatchify.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  rules::ndim(args, 0, 3);
  const std::string& order = args.attrs.text("order");
  rules::demand(order == "channel_first" || order == "channel_last", args,
                "attribute 'order' channel_first or channel_last");
  const DType dtype = parse_dtype(args.attrs.text("dtype"));
  rules::demand(is_floating(dtype), args, "attribute 'dtype' a floating type");
  const int64_t frames = args.attrs.integer("frames"), height = args.attrs.integer("height");
  const int64_t width = args.attrs.integer("width");
  rules::demand(frames >= 0 && height >= 0 && width >= 0, args, "sizes of at least 0");
  const Shape& x = args.inputs[0].shape;
  rules::demand(x[1] == frames * (height / 2) * (width / 2) && x[2] % 4 == 0, args,
                "x [B, frames * (height/2) * (width/2), 4 C]");
  return {{dtype, Shape{x[0], frames, height, width, x[2] / 4}}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  const bool first = args.attrs.text("order") == "channel_first";
  return {patchify(args.builder, args.output_grads[0],
                   first ? PatchOrder::kChannelFirst : PatchOrder::kChannelLast,
                   args.builder.dtype(args.inputs[0]))};
}

}  // namespace

const OpDef unpatchify_op = {.name = "unpatchify", .infer = infer, .backward = backward};

ValueId unpatchify(Builder& b, ValueId x, const FrameSize& size, PatchOrder order, DType dtype) {
  const std::string text = order == PatchOrder::kChannelFirst ? "channel_first" : "channel_last";
  return b.emit1(unpatchify_op, {x},
                 {{"dtype", std::string(name(dtype))},
                  {"frames", size.frames},
                  {"height", size.height},
                  {"order", text},
                  {"width", size.width}});
}

}  // namespace wam
