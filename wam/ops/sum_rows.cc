#include "wam/ops/sum_rows.h"

#include "wam/ops/broadcast_rows.h"
#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  const Shape suffix(args.attrs.integers_or_empty("suffix"));
  rules::demand(rules::is_suffix(suffix, args.inputs[0].shape), args, "attribute 'suffix' a suffix");
  return {{args.inputs[0].dtype, suffix}};
}

std::vector<ValueId> backward(const BackwardArgs& args) {
  return {broadcast_rows(args.builder, args.output_grads[0], args.builder.shape(args.inputs[0]))};
}

}  // namespace

const OpDef sum_rows_op = {
    .name = "sum_rows", .infer = infer, .backward = backward, .traits = kReduction};

ValueId sum_rows(Builder& b, ValueId x, const Shape& suffix) {
  if (b.shape(x) == suffix) return x;
  return b.emit1(sum_rows_op, {x},
                 {{"suffix", std::vector<int64_t>(suffix.dims().begin(), suffix.dims().end())}});
}

}  // namespace wam
