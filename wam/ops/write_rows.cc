#include "wam/ops/write_rows.h"

#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam {
namespace {

std::vector<TensorType> infer(const OpArgs& args) {
  rules::count(args, 2, 2);
  rules::same_dtype(args, 1);
  rules::ndim(args, 0, 3);
  rules::ndim(args, 1, 3);
  const Shape &buffer = args.inputs[0].shape, &rows = args.inputs[1].shape;
  const int64_t offset = args.attrs.integer("offset");
  rules::demand(rows[0] == buffer[0] && rows[2] == buffer[2], args, "rows as wide as the buffer's");
  rules::demand(offset >= 0 && offset + rows[1] <= buffer[1], args,
                "rows [offset, offset + n) inside the buffer");
  return {args.inputs[0]};
}

// In place only the rows move.
OpCost cost(const OpArgs& args, std::span<const TensorType>) {
  return {0, 2.0 * static_cast<double>(args.inputs[1].size_bytes())};
}

}  // namespace

const OpDef write_rows_op = {.name = "write_rows",
                             .infer = infer,
                             .cost = cost,
                             .in_place = {{0, 0}},
                             .traits = kNotDifferentiable};

ValueId write_rows(Builder& b, ValueId buffer, ValueId rows, int64_t offset) {
  return b.emit1(write_rows_op, {buffer, rows}, {{"offset", offset}});
}

}  // namespace wam
