#include "wam/ops/resize_image.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const TensorType& x = args.inputs[0];
  rules::demand(x.dtype == DType::kF32 || x.dtype == DType::kF64, args, "x in f32 or f64");
  const int64_t height = args.attrs.integer("height"), width = args.attrs.integer("width");
  rules::demand(x.shape.ndim() >= 3 && x.shape[-3] > 0 && x.shape[-2] > 0, args,
                "x [..., H, W, C], not empty");
  rules::demand(height > 0 && width > 0, args, "attributes height and width above 0");
  const std::string& filter = args.attrs.text("filter");
  rules::demand(filter == "bilinear" || filter == "bicubic", args,
                "attribute filter bilinear or bicubic");
  const int ndim = x.shape.ndim();
  return {{x.dtype, rules::with_dim(rules::with_dim(x.shape, ndim - 3, height), ndim - 2, width)}};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  const double taps = args.attrs.text("filter") == "bicubic" ? 16 : 4;
  return {.flops = 2 * taps * static_cast<double>(outputs[0].shape.num_elements()),
          .bytes = static_cast<double>(args.inputs[0].size_bytes() + outputs[0].size_bytes())};
}

}  // namespace

const OpDef resize_image_op = {.name = "resize_image", .infer = infer, .cost = cost};

ValueId resize_image(Builder& b, ValueId x, int64_t height, int64_t width, ResizeFilter filter) {
  const Shape& shape = b.shape(x);
  if (shape.ndim() >= 3 && shape[-3] == height && shape[-2] == width) return x;
  const std::string text = filter == ResizeFilter::kBicubic ? "bicubic" : "bilinear";
  return b.emit1(resize_image_op, {x}, {{"height", height}, {"width", width}, {"filter", text}});
}

}  // namespace wam
