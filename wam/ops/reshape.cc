#include "wam/ops/reshape.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  const Shape shape(args.attrs.integers("shape"));
  rules::demand(shape.num_elements() == args.inputs[0].shape.num_elements(), args,
                "as many elements as attribute 'shape'");
  return {{args.inputs[0].dtype, shape}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  return {reshape(args.builder, args.output_grads[0], args.builder.shape(args.inputs[0]))};
}

int64_t view_offset(const OpArgs&) { return 0; }

}  // namespace

const OpDef reshape_op = {.name = "reshape",
                          .infer = infer,
                          .backward = backward,
                          .view_offset = view_offset,
                          .traits = kView};

ValueId reshape(Builder& b, ValueId x, const Shape& shape) {
  if (b.shape(x) == shape) return x;
  return b.emit1(reshape_op, {x},
                 {{"shape", std::vector<int64_t>(shape.dims().begin(), shape.dims().end())}});
}

}  // namespace wam
