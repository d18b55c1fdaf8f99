#include "wam/ops/pack.h"

#include <limits>

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 1, std::numeric_limits<size_t>::max());
  const std::vector<int64_t> offsets = args.attrs.integers("offsets");
  const int64_t size = args.attrs.integer("size");
  rules::demand(offsets.size() == args.inputs.size(), args, "one offset an input");
  int64_t end = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    rules::same_dtype(args, i);
    rules::demand(offsets[i] >= end, args, "ascending pieces that do not overlap");
    end = offsets[i] + args.inputs[i].shape.num_elements();
  }
  rules::demand(end <= size, args, "pieces that end within attribute 'size'");
  return {{args.inputs[0].dtype, Shape{size}}};
}

}  // namespace

const OpDef pack_op = {.name = "pack", .infer = infer, .traits = kPack};

ValueId pack(Builder& b, std::span<const ValueId> pieces, std::span<const int64_t> offsets,
             int64_t size) {
  return b
      .emit(pack_op, pieces,
            {{"offsets", std::vector<int64_t>(offsets.begin(), offsets.end())}, {"size", size}})
      .front();
}

}  // namespace wam
