#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  Wide y = args.output(0);
  for_each(args.inputs[0].shape, [&](const Index& index, size_t place) {
    Index to = index;
    to[1] = static_cast<int64_t>(args.inputs[1].data[static_cast<size_t>(index[1])]);
    y.data[flat(y.shape, to)] = args.inputs[0].data[place];
  });
  return {y};
}
}  // namespace

void put_rows_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t rows) {
    tables.add({.op = &put_rows_op,
                .label = label,
                .attrs = {{"rows", rows}},
                .inputs = {x(shape), distinct(shape[1], rows)},
                .reference = reference});
  };
  with("one", Shape{1, 1, 1}, 1);
  with("some", Shape{2, 4, 31}, 9);
  with("all", Shape{3, 5, 2}, 5);
  with("flat_rows", Shape{3, 4}, 7);
  with("none", Shape{2, 0, 3}, 4);
  with("large", Shape{3, 200, 65}, 301);
  const auto refuse = [&](const char* label, int64_t rows, TensorType type, TensorType index) {
    tables.refuse(
        {.op = &put_rows_op, .label = label, .attrs = {{"rows", rows}}, .inputs = {type, index}});
  };
  refuse("too_few_rows", 2, {DType::kF32, Shape{1, 3}}, {DType::kI32, Shape{3}});
  refuse("other_count", 9, {DType::kF32, Shape{1, 3}}, {DType::kI32, Shape{2}});
  refuse("float_index", 9, {DType::kF32, Shape{1, 3}}, {DType::kF32, Shape{3}});
}

}  // namespace wam::conformance
