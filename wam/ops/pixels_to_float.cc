#include "wam/ops/pixels_to_float.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::dtype(args, 0, DType::kU8);
  const DType dtype = parse_dtype(args.attrs.text("dtype"));
  rules::demand(dtype == DType::kF32 || dtype == DType::kF64, args, "attribute dtype f32 or f64");
  return {{dtype, args.inputs[0].shape}};
}

}  // namespace

const OpDef pixels_to_float_op = {
    .name = "pixels_to_float", .infer = infer, .traits = kElementwise | kNotDifferentiable};

ValueId pixels_to_float(Builder& b, ValueId x, DType dtype) {
  return b.emit1(pixels_to_float_op, {x}, {{"dtype", std::string(name(dtype))}});
}

}  // namespace wam
