#include "wam/ops/all_reduce.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, 1);
  rules::floating(args, 0);
  rules::collective(args);
  rules::wire(args);
  return {args.inputs[0]};
}

// Bytes: what a rank receives from others, 2 (N - 1) / N of the whole.
OpCost cost(const OpArgs& args, std::span<const TensorType> outputs) {
  const auto ranks = static_cast<double>(args.attrs.integer("ranks"));
  const auto count = static_cast<double>(outputs[0].shape.num_elements());
  const double share = (ranks - 1) / ranks;
  return {share * count, 2 * share * count * rules::wire_bytes(args)};
}

}  // namespace

const OpDef all_reduce_op = {.name = "all_reduce",
                             .infer = infer,
                             .cost = cost,
                             .in_place = {{0, 0}},
                             .traits = kReduction | kCollective};

ValueId all_reduce(Builder& b, ValueId x, const RankGroup& group, DType wire) {
  return b.emit1(all_reduce_op, {x},
                 {{"axis", group.axis}, {"ranks", group.ranks}, {"wire", std::string(name(wire))}});
}

}  // namespace wam
