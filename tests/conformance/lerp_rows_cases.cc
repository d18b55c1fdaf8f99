#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const Wide &a = args.inputs[0], &b = args.inputs[1], &sigma = args.inputs[2];
  Wide y = args.output(0);
  y.magnitude.resize(y.data.size());
  for_each(y.shape, [&](const Index& i, size_t place) {
    const auto t = static_cast<int64_t>(args.inputs[3].data[static_cast<size_t>(i[1])]);
    const double s = sigma.data[flat(sigma.shape, {i[0], t})];
    y.data[place] = (1 - s) * a.data[place] + s * b.data[place];
    y.magnitude[place] = std::fabs((1 - s) * a.data[place]) + std::fabs(s * b.data[place]);
  });
  return {y};
}
}  // namespace

void lerp_rows_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t t, Input index) {
    tables.add(
        {.op = &lerp_rows_op,
         .label = label,
         .inputs = {x(shape), x(shape), uniform(Shape{shape[0], t}, 0, 1, Role::kStat), index},
         .errors = {elementwise(4)},
         .reference = reference});
  };
  with("one", Shape{1, 1, 1}, 1, runs(1, 1));
  with("runs", Shape{2, 9, 31}, 3, runs(9, 3));
  with("scattered", Shape{3, 17, 33}, 4, below(17, 4));
  with("none", Shape{2, 0, 3}, 1, runs(0, 1));
  with("large", Shape{2, 200, 193}, 5, runs(200, 5));
  const TensorType in{DType::kF32, Shape{2, 4, 3}}, sigma{DType::kF32, Shape{2, 5}};
  const TensorType index{DType::kI32, Shape{4}};
  const auto refuse = [&](const char* label, std::vector<TensorType> types) {
    tables.refuse({.op = &lerp_rows_op, .label = label, .inputs = std::move(types)});
  };
  refuse("other_noise", {in, {DType::kF32, Shape{2, 3, 3}}, sigma, index});
  refuse("other_batch", {in, in, {DType::kF32, Shape{1, 5}}, index});
  refuse("short_index", {in, in, sigma, {DType::kI32, Shape{5}}});
}

}  // namespace wam::conformance
