#include "wam/ops/all_gather.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::ndim(args, 0, 1);
  rules::collective(args);
  return {{args.inputs[0].dtype, Shape{args.inputs[0].shape[0] * args.attrs.integer("ranks")}}};
}

// Bytes: what a rank receives from others.
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  return {0, static_cast<double>(outputs[0].size_bytes() - args.inputs[0].size_bytes())};
}

}  // namespace

const OpDef all_gather_op = {
    .name = "all_gather", .infer = infer, .cost = cost, .traits = kCollective};

ValueId all_gather(Builder& b, ValueId x, const RankGroup& group) {
  return b.emit1(all_gather_op, {x}, {{"axis", group.axis}, {"ranks", group.ranks}});
}

}  // namespace wam
