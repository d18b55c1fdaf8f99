#include "wam/ops/cast.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  const DType dtype = parse_dtype(args.attrs.text("dtype"));
  rules::demand(is_floating(dtype), args, "attribute 'dtype' a floating type");
  return {{dtype, args.inputs[0].shape}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  return {cast(args.builder, args.output_grads[0], args.builder.dtype(args.inputs[0]))};
}

}  // namespace

const OpDef cast_op = {.name = "cast", .infer = infer, .backward = backward, .traits = kElementwise};

ValueId cast(Builder& b, ValueId x, DType dtype) {
  if (b.dtype(x) == dtype) return x;
  return b.emit1(cast_op, {x}, {{"dtype", std::string(name(dtype))}});
}

}  // namespace wam
