#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {
std::vector<Wide> reference(const RefArgs& args) {
  const bool kn = args.attrs.flag("kn");
  const Wide& w = args.inputs[1];
  const auto n = static_cast<size_t>(w.shape[kn ? 1 : 0]),
             k = static_cast<size_t>(w.shape[kn ? 0 : 1]);
  Wide h = args.output(0), pre = args.output(1);
  for (size_t place = 0; place < pre.data.size(); ++place) {
    Dot dot;
    for (size_t p = 0; p < k; ++p) {
      const double weight = kn ? w.data[p * n + place % n] : w.data[place % n * k + p];
      dot.add(args.inputs[0].data[place / n * k + p] * weight);
    }
    if (args.inputs.size() == 3) dot.add(args.inputs[2].data[place % n]);
    pre.data[place] = dot.sum;
    pre.magnitude.push_back(dot.size);
    h.data[place] = gelu_tanh_of(dot.sum);
    // The slope of gelu_tanh is below 1.13.
    h.magnitude.push_back(1.13 * dot.size);
  }
  return {h, pre};
}
}  // namespace

void linear_gelu_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape rows, int64_t n, int64_t k, bool kn, bool bias) {
    std::vector<int64_t> dims(rows.dims().begin(), rows.dims().end());
    dims.push_back(k);
    Case c{.op = &linear_gelu_op,
           .label = label,
           .attrs = {{"kn", kn}},
           .inputs = {x(Shape(dims)), x(kn ? Shape{k, n} : Shape{n, k}, 0.3)},
           .errors = {matmul(static_cast<double>(k + 1))},
           .reference = reference};
    if (bias) c.inputs.push_back(x(Shape{n}));
    tables.add(c);
  };
  with("one", Shape{1}, 1, 1, false, true);
  with("odd", Shape{2, 3}, 31, 33, false, true);
  with("kn", Shape{7}, 5, 4, true, true);
  with("no_bias", Shape{5}, 9, 8, false, false);
  with("no_rows", Shape{0}, 3, 4, false, true);
  with("tiles", Shape{2, 161}, 70, 40, false, true);
  with("wide", Shape{3}, 1100, 17, false, true);
  tables.refuse({.op = &linear_gelu_op,
                 .label = "other_k",
                 .attrs = {{"kn", false}},
                 .inputs = {{DType::kF32, Shape{2, 3}}, {DType::kF32, Shape{4, 2}}}});
}

}  // namespace wam::conformance
