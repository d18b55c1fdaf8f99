#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void gelu_tanh_cases(Tables& tables) {
  const Reference value =
      map1(gelu_tanh_of, [](double v) { return std::fabs(gelu_tanh_of(v)) * (1 + v * v); });
  const Reference slope =
      map2([](double dy, double v) { return dy * gelu_tanh_slope(v); },
           [](double dy, double v) { return std::fabs(dy) * (1 + std::fabs(v)); });
  const auto with = [&](const char* label, const Input& input) {
    tables.add({.op = &gelu_tanh_op,
                .label = label,
                .inputs = {input},
                .errors = {elementwise(16)},
                .reference = value});
    tables.add({.op = &gelu_tanh_grad_op,
                .label = label,
                .inputs = {x(input.shape), input},
                .errors = {elementwise(16)},
                .reference = slope});
  };
  for (const Shape& shape : {Shape{}, Shape{31}, Shape{4, 33}, Shape{0, 3}, Shape{257, 193}}) {
    with(("of_" + std::to_string(shape.num_elements())).c_str(), x(shape, 2));
  }
  with("extremes", values(Shape{13}, {-100, -30, -9, -5, -1, -0.0, 0, 1e-30, 0.5, 3, 9, 40, 1000}));
  tables.refuse({.op = &gelu_tanh_op, .label = "integers", .inputs = {{DType::kI32, Shape{2}}}});
  tables.refuse({.op = &gelu_tanh_grad_op,
                 .label = "other_shape",
                 .inputs = {{DType::kF32, Shape{2}}, {DType::kF32, Shape{3}}}});
}

}  // namespace wam::conformance
