#include "wam/ops/embedding.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::dtype(args, 0, DType::kI32);
  rules::floating(args, 1);
  rules::ndim(args, 1, 2);
  const Shape& ids = args.inputs[0].shape;
  std::vector<int64_t> dims(ids.dims().begin(), ids.dims().end());
  dims.push_back(args.inputs[1].shape[1]);
  return {{args.inputs[1].dtype, Shape(dims)}};
}

OpCost cost(const OpArgs&, std::span<const TensorType> outputs) {
  return {.bytes = 2.0 * static_cast<double>(outputs[0].size_bytes())};
}

}  // namespace

const OpDef embedding_op = {.name = "embedding", .infer = infer, .cost = cost};

ValueId embedding(Builder& b, ValueId ids, ValueId table) {
  rules::constant_index(b, ids, b.shape(table)[0], /*unique=*/false, "embedding");
  return b.emit1(embedding_op, {ids, table});
}

}  // namespace wam
