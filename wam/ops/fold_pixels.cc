#include "wam/ops/fold_pixels.h"

#include "wam/ops/cast.h"
#include "wam/ops/op_list.h"
#include "wam/ops/permute.h"
#include "wam/ops/reshape.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  rules::ndim(args, 0, 5);
  const DType dtype = parse_dtype(args.attrs.text("dtype"));
  rules::demand(is_floating(dtype), args, "attribute 'dtype' a floating type");
  const Shape& x = args.inputs[0].shape;
  rules::demand(x[2] % 2 == 0 && x[3] % 2 == 0, args, "even sides");
  return {{dtype, Shape{x[0], x[1], x[2] / 2, x[3] / 2, 4 * x[4]}}};
}

std::vector<ValueId> decompose(Builder& b, std::span<const ValueId> inputs, const Attrs& attrs) {
  ValueId x = cast(b, inputs[0], parse_dtype(attrs.text("dtype")));
  const Shape s = b.shape(x);
  x = reshape(b, x, Shape{s[0] * s[1], s[2] / 2, 2, s[3] / 2, 2, s[4]});
  x = permute(b, x, {0, 1, 3, 5, 4, 2});
  return {reshape(b, x, Shape{s[0], s[1], s[2] / 2, s[3] / 2, 4 * s[4]})};
}

}  // namespace

const OpDef fold_pixels_op = {.name = "fold_pixels", .infer = infer, .decompose = decompose};

ValueId fold_pixels(Builder& b, ValueId x, DType dtype) {
  return b.emit1(fold_pixels_op, {x}, {{"dtype", std::string(name(dtype))}});
}

}  // namespace wam
