#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  Wide y = args.output(0);
  for (const double value : args.inputs[0].data) y.data[0] += value * value;
  return {y};
}
}  // namespace

void sum_squares_cases(Tables& tables) {
  for (const Shape& shape : {Shape{}, Shape{31}, Shape{4, 33}, Shape{0}, Shape{50001}}) {
    tables.add({.op = &sum_squares_op,
                .label = "of_" + std::to_string(shape.num_elements()),
                .inputs = {x(shape)},
                .errors = {reduction(static_cast<double>(shape.num_elements()))},
                .reference = reference});
  }
  tables.add({.op = &sum_squares_op,
              .label = "infinite",
              .inputs = {values(Shape{3}, {1, HUGE_VAL, 2})},
              .reference = reference});
  tables.refuse({.op = &sum_squares_op, .label = "integers", .inputs = {{DType::kI32, Shape{2}}}});
}

}  // namespace wam::conformance
