#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void pixels_to_float_cases(Tables& t) {
  const auto reference = [](const RefArgs& args) {
    Wide y = args.output(0);
    for (size_t i = 0; i < y.data.size(); ++i)
      y.data[i] = (args.inputs[0].data[i] / 255 - 0.5) / 0.5;
    y.magnitude.assign(y.data.size(), 1);
    return std::vector<Wide>{y};
  };
  std::vector<double> every(256);
  for (size_t i = 0; i < every.size(); ++i) every[i] = static_cast<double>(i);
  const auto add = [&](const std::string& label, const Shape& shape, std::vector<double> list) {
    t.add({.op = &pixels_to_float_op,
           .label = label,
           .attrs = {{"dtype", "stat"}},
           .inputs = {constant(values(shape, std::move(list), Role::kU8))},
           .errors = {elementwise(3)},
           .reference = reference});
  };
  add("every_value", Shape{256}, every);
  add("picture", Shape{1, 2, 2, 3}, {0, 1, 2, 127, 128, 129, 253, 254, 255, 3, 4, 5});
  t.refuse({.op = &pixels_to_float_op,
            .label = "float_input",
            .attrs = {{"dtype", "f32"}},
            .inputs = {{DType::kF32, Shape{3}}}});
  t.refuse({.op = &pixels_to_float_op,
            .label = "integer_output",
            .attrs = {{"dtype", "i32"}},
            .inputs = {{DType::kU8, Shape{3}}}});
}

}  // namespace wam::conformance
