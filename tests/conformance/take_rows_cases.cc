#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void take_rows_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t count) {
    tables.add({.op = &take_rows_op,
                .label = label,
                .inputs = {x(shape), distinct(count, shape[1])},
                .reference = gather([](const RefArgs& args, const Index& index) {
                  Index from = index;
                  from[1] =
                      static_cast<int64_t>(args.inputs[1].data[static_cast<size_t>(index[1])]);
                  return from;
                })});
  };
  with("one", Shape{1, 1, 1}, 1);
  with("some", Shape{2, 9, 31}, 4);
  with("all", Shape{3, 5, 2}, 5);
  with("flat_rows", Shape{3, 7}, 4);
  with("none", Shape{2, 4, 3}, 0);
  with("no_samples", Shape{0, 4, 3}, 2);
  with("large", Shape{3, 301, 65}, 200);
  const auto refuse = [&](const char* label, TensorType type, TensorType index) {
    tables.refuse({.op = &take_rows_op, .label = label, .inputs = {type, index}});
  };
  refuse("no_rows", {DType::kF32, Shape{3}}, {DType::kI32, Shape{1}});
  refuse("wide_index", {DType::kF32, Shape{2, 3}}, {DType::kI64, Shape{1}});
  refuse("index_matrix", {DType::kF32, Shape{2, 3}}, {DType::kI32, Shape{1, 1}});
}

}  // namespace wam::conformance
