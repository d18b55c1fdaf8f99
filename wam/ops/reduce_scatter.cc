#include "wam/ops/reduce_scatter.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  rules::ndim(args, 0, 1);
  rules::collective(args);
  rules::wire(args);
  const int64_t ranks = args.attrs.integer("ranks"), count = args.inputs[0].shape[0];
  rules::demand(count % ranks == 0, args, "a size that attribute 'ranks' divides");
  return {{args.inputs[0].dtype, Shape{count / ranks}}};
}

// Bytes: what a rank receives from others.
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  const double others = static_cast<double>(args.attrs.integer("ranks") - 1);
  const auto count = static_cast<double>(outputs[0].shape.num_elements());
  return {others * count, others * count * rules::wire_bytes(args)};
}

}  // namespace

const OpDef reduce_scatter_op = {
    .name = "reduce_scatter", .infer = infer, .cost = cost, .traits = kReduction | kCollective};

ValueId reduce_scatter(Builder& b, ValueId x, const RankGroup& group, DType wire) {
  return b.emit1(reduce_scatter_op, {x},
                 {{"axis", group.axis}, {"ranks", group.ranks}, {"wire", std::string(name(wire))}});
}

}  // namespace wam
