#include <algorithm>

#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void relu_cases(Tables& tables) {
  const Reference value = map1([](double v) { return std::max(v, 0.0); });
  const Reference slope = map2([](double dy, double v) { return v > 0 ? dy : 0; });
  const auto with = [&](const char* label, const Input& input) {
    tables.add({.op = &relu_op,
                .label = label,
                .inputs = {input},
                .errors = {exact()},
                .reference = value});
    tables.add({.op = &relu_grad_op,
                .label = label,
                .inputs = {x(input.shape), input},
                .errors = {exact()},
                .reference = slope});
  };
  for (const Shape& shape : {Shape{}, Shape{31}, Shape{4, 33}, Shape{0, 3}, Shape{257, 193}}) {
    with(("of_" + std::to_string(shape.num_elements())).c_str(), away_from_zero(shape, 0.01));
  }
  with("extremes", values(Shape{6}, {-100, -1, -0.25, 0.5, 3, 1000}));
  tables.refuse({.op = &relu_op, .label = "integers", .inputs = {{DType::kI32, Shape{2}}}});
  tables.refuse({.op = &relu_grad_op,
                 .label = "other_shape",
                 .inputs = {{DType::kF32, Shape{2}}, {DType::kF32, Shape{3}}}});
}

}  // namespace wam::conformance
