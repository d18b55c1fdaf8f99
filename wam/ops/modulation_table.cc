#include "wam/ops/modulation_table.h"

#include "wam/ops/op_list.h"
#include "wam/ops/permute.h"
#include "wam/ops/reshape.h"
#include "wam/ops/rules.h"
#include "wam/ops/sum_dim.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::floating(args, 0);
  rules::floating(args, 1);
  rules::stat(args, 0);
  rules::ndim(args, 0, 3);
  rules::ndim(args, 1, 2);
  const Shape &e = args.inputs[0].shape, &m = args.inputs[1].shape;
  rules::demand(e[2] == m[0] * m[1], args, "e [B, T, J*D] for m [J, D]");
  rules::demand(rules::grad_dtype(args.inputs[1].dtype) == args.inputs[0].dtype, args,
                "m of e's type, or narrower with f32");
  return {{args.inputs[0].dtype, Shape{m[0], e[0], e[1], m[1]}}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  Builder& b = args.builder;
  const ValueId dy = args.output_grads[0];
  const Shape shape = b.shape(dy), e = b.shape(args.inputs[0]);
  std::vector<ValueId> grads(2);
  if (args.needs_grad[0]) grads[0] = reshape(b, permute(b, dy, {1, 2, 0, 3}), e);
  if (args.needs_grad[1]) {
    grads[1] = sum_dim(b, reshape(b, dy, Shape{shape[0], shape[1] * shape[2], shape[3]}), 1);
  }
  return grads;
}

}  // namespace

const OpDef modulation_table_op = {
    .name = "modulation_table", .infer = infer, .backward = backward};

ValueId modulation_table(Builder& b, ValueId e, ValueId m) {
  return b.emit1(modulation_table_op, {e, m});
}

}  // namespace wam
