#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

void scale_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, double factor, double offset) {
    tables.add({.op = &scale_op,
                .label = label,
                .attrs = {{"factor", factor}, {"offset", offset}},
                .inputs = {x(shape)},
                .errors = {elementwise(3)},
                .reference = [=](const RefArgs& args) {
                  Wide y = args.output(0);
                  for (size_t i = 0; i < y.data.size(); ++i) {
                    y.data[i] = factor * args.inputs[0].data[i] + offset;
                    y.magnitude.push_back(std::fabs(factor * args.inputs[0].data[i]) +
                                          std::fabs(offset));
                  }
                  return std::vector<Wide>{y};
                }});
  };
  with("one", Shape{}, -1, 0);
  with("shift", Shape{3, 33}, 0.5, 0.5);
  with("empty", Shape{0}, 2, 0);
  with("large", Shape{70001}, 1.0 / 3, -2);
  tables.refuse({.op = &scale_op,
                 .label = "integers",
                 .attrs = {{"factor", 1.0}, {"offset", 0.0}},
                 .inputs = {{DType::kI32, Shape{2}}}});
}

}  // namespace wam::conformance
