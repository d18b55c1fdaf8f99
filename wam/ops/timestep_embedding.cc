#include "wam/ops/timestep_embedding.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  rules::stat(args, 0);
  const int64_t dim = args.attrs.integer("dim");
  rules::demand(dim >= 2 && dim % 2 == 0, args, "attribute 'dim' even and at least 2");
  const std::string& order = args.attrs.text("order");
  rules::demand(order == "cos_sin" || order == "sin_cos", args,
                "attribute 'order' cos_sin or sin_cos");
  const Shape& t = args.inputs[0].shape;
  rules::demand(t.ndim() < Shape::kMaxDims, args, "room for one more dim");
  std::vector<int64_t> dims(t.dims().begin(), t.dims().end());
  dims.push_back(dim);
  return {{args.inputs[0].dtype, Shape(dims)}};
}

OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  // A sine in float64 is about twenty operations.
  return {20.0 * static_cast<double>(outputs[0].shape.num_elements()),
          static_cast<double>(args.inputs[0].size_bytes() + outputs[0].size_bytes())};
}

}  // namespace

const OpDef timestep_embedding_op = {
    .name = "timestep_embedding", .infer = infer, .cost = cost, .traits = kNotDifferentiable};

ValueId timestep_embedding(Builder& b, ValueId t, int64_t dim, SinusoidOrder order) {
  const std::string text = order == SinusoidOrder::kCosSin ? "cos_sin" : "sin_cos";
  return b.emit1(timestep_embedding_op, {t}, {{"dim", dim}, {"order", text}});
}

}  // namespace wam
