#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const auto dim = args.attrs.integer("dim");
  Wide y = args.output(0);
  y.magnitude.assign(y.data.size(), 0);
  for_each(args.inputs[0].shape, [&](Index index, size_t place) {
    index.erase(index.begin() + dim);
    const double value = args.inputs[0].data[place];
    y.data[flat(y.shape, index)] += value;
    y.magnitude[flat(y.shape, index)] += std::fabs(value);
  });
  return {y};
}
}  // namespace

void sum_dim_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape, int64_t dim) {
    tables.add({.op = &sum_dim_op,
                .label = label,
                .attrs = {{"dim", dim}},
                .inputs = {x(shape)},
                .errors = {reduction(static_cast<double>(shape[static_cast<int>(dim)]))},
                .reference = reference});
  };
  with("one", Shape{1}, 0);
  with("vector", Shape{33}, 0);
  with("first", Shape{65, 7}, 0);
  with("middle", Shape{2, 31, 33}, 1);
  with("last", Shape{5, 127}, 1);
  with("of_nothing", Shape{3, 0, 2}, 1);
  with("no_results", Shape{0, 3}, 1);
  with("large_last", Shape{301, 193}, 1);
  with("large_middle", Shape{6, 130, 100}, 1);
  tables.refuse({.op = &sum_dim_op,
                 .label = "no_dim",
                 .attrs = {{"dim", int64_t{1}}},
                 .inputs = {{DType::kF32, Shape{2}}}});
  tables.refuse({.op = &sum_dim_op,
                 .label = "integers",
                 .attrs = {{"dim", int64_t{0}}},
                 .inputs = {{DType::kI32, Shape{2}}}});
}

}  // namespace wam::conformance
