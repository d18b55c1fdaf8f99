#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const bool kn = args.attrs.flag("kn");
  const Wide& w = args.inputs[1];
  const auto n = static_cast<size_t>(w.shape[kn ? 1 : 0]),
             k = static_cast<size_t>(w.shape[kn ? 0 : 1]);
  Wide dpre = args.output(0);
  for (size_t place = 0; place < dpre.data.size(); ++place) {
    Dot dot;
    for (size_t q = 0; q < n; ++q) {
      const double weight = kn ? w.data[place % k * n + q] : w.data[q * k + place % k];
      dot.add(args.inputs[0].data[place / k * n + q] * weight);
    }
    const double pre = args.inputs[2].data[place];
    dpre.data[place] = dot.sum * gelu_tanh_slope(pre);
    dpre.magnitude.push_back(dot.size * (1 + std::fabs(pre)));
  }
  return {dpre};
}
}  // namespace

void linear_dgrad_gelu_cases(Tables& tables) {
  const auto with = [&](const char* label, int64_t rows, int64_t n, int64_t k, bool kn) {
    tables.add({.op = &linear_dgrad_gelu_op,
                .label = label,
                .attrs = {{"kn", kn}},
                .inputs = {x(Shape{rows, n}), x(kn ? Shape{k, n} : Shape{n, k}), x(Shape{rows, k})},
                .errors = {matmul(static_cast<double>(n))},
                .reference = reference});
  };
  with("one", 1, 1, 1, false);
  with("odd", 6, 31, 33, false);
  with("kn", 7, 5, 4, true);
  with("no_rows", 0, 3, 4, false);
  with("tiles", 322, 40, 70, false);
  const TensorType dy{DType::kF32, Shape{2, 4}}, w{DType::kF32, Shape{4, 3}};
  const auto refuse = [&](const char* label, std::vector<TensorType> types) {
    tables.refuse({.op = &linear_dgrad_gelu_op,
                   .label = label,
                   .attrs = {{"kn", false}},
                   .inputs = std::move(types)});
  };
  refuse("no_pre", {dy, w});
  refuse("other_pre", {dy, w, {DType::kF32, Shape{2, 4}}});
}

}  // namespace wam::conformance
