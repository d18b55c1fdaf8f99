#include "wam/ops/relative_bias.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::floating(args, 0);
  rules::ndim(args, 0, 2);
  rules::dtype(args, 1, DType::kI32);
  const int64_t queries = args.attrs.integer("queries"), keys = args.attrs.integer("keys");
  rules::demand(queries > 0 && keys > 0, args, "attributes queries and keys above 0");
  rules::shape(args, 1, Shape{queries + keys - 1});
  return {{rules::grad_dtype(args.inputs[0].dtype), Shape{args.inputs[0].shape[1], queries, keys}}};
}

}  // namespace

const OpDef relative_bias_op = {.name = "relative_bias", .infer = infer};

ValueId relative_bias(Builder& b, ValueId table, ValueId bucket, int64_t queries, int64_t keys) {
  rules::constant_index(b, bucket, b.shape(table)[0], /*unique=*/false, "relative_bias");
  return b.emit1(relative_bias_op, {table, bucket}, {{"queries", queries}, {"keys", keys}});
}

}  // namespace wam
