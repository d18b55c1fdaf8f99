#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  Wide y = args.output(0);
  const size_t period = y.data.size();
  y.magnitude.assign(period, 0);
  for (size_t i = 0; i < args.inputs[0].data.size(); ++i) {
    y.data[i % period] += args.inputs[0].data[i];
    y.magnitude[i % period] += std::fabs(args.inputs[0].data[i]);
  }
  return {y};
}
}  // namespace

void sum_rows_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape from, std::vector<int64_t> suffix) {
    const Shape to(suffix);
    const double terms = static_cast<double>(from.num_elements()) /
                         static_cast<double>(std::max<int64_t>(1, to.num_elements()));
    tables.add({.op = &sum_rows_op,
                .label = label,
                .attrs = {{"suffix", suffix}},
                .inputs = {x(from)},
                .errors = {reduction(terms)},
                .reference = reference});
  };
  with("one", Shape{1, 1}, {1});
  with("all", Shape{7, 31}, {});
  with("vector", Shape{5, 33}, {33});
  with("two_dims", Shape{65, 3, 5}, {3, 5});
  with("blocks", Shape{129, 32}, {32});
  with("no_rows", Shape{0, 3}, {3});
  with("large", Shape{1003, 193}, {193});
  tables.refuse({.op = &sum_rows_op,
                 .label = "no_suffix",
                 .attrs = {{"suffix", std::vector<int64_t>{2}}},
                 .inputs = {{DType::kF32, Shape{2, 3}}}});
  tables.refuse({.op = &sum_rows_op,
                 .label = "integers",
                 .attrs = {{"suffix", std::vector<int64_t>{3}}},
                 .inputs = {{DType::kI32, Shape{2, 3}}}});
}

}  // namespace wam::conformance
