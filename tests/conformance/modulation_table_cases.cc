#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const Wide &e = args.inputs[0], &m = args.inputs[1];
  Wide y = args.output(0);
  y.magnitude.resize(y.data.size());
  for_each(y.shape, [&](const Index& i, size_t place) {
    const double a = e.data[flat(e.shape, {i[1], i[2], i[0] * m.shape[1] + i[3]})];
    const double b = m.data[flat(m.shape, {i[0], i[3]})];
    y.data[place] = a + b;
    y.magnitude[place] = std::fabs(a) + std::fabs(b);
  });
  return {y};
}
}  // namespace

void modulation_table_cases(Tables& tables) {
  const auto with = [&](const char* label, int64_t batch, int64_t t, int64_t parts, int64_t d) {
    tables.add({.op = &modulation_table_op,
                .label = label,
                .inputs = {stat(Shape{batch, t, parts * d}), stat(Shape{parts, d})},
                .errors = {elementwise(1)},
                .reference = reference});
  };
  with("one", 1, 1, 1, 1);
  with("head", 2, 3, 2, 31);
  with("block", 3, 7, 6, 33);
  with("none", 2, 0, 6, 4);
  with("large", 4, 20, 6, 65);
  const auto refuse = [&](const char* label, TensorType e, TensorType m) {
    tables.refuse({.op = &modulation_table_op, .label = label, .inputs = {e, m}});
  };
  refuse("other_width", {DType::kF32, Shape{2, 3, 12}}, {DType::kF32, Shape{6, 3}});
  refuse("bf16_e", {DType::kBF16, Shape{2, 3, 12}}, {DType::kBF16, Shape{6, 2}});
  refuse("f64_m", {DType::kF32, Shape{2, 3, 12}}, {DType::kF64, Shape{6, 2}});
}

}  // namespace wam::conformance
