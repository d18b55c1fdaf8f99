#include "tests/conformance/references.h"
#include "wam/ops/op_list.h"

namespace wam::conformance {

namespace {

double rstd_of(const double* x, size_t n, double eps) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] * x[i] / static_cast<double>(n);
  return 1 / std::sqrt(sum + eps);
}

std::vector<Wide> forward(const RefArgs& args) {
  const Wide& in = args.inputs[0];
  const auto n = static_cast<size_t>(in.shape[-1]);
  Wide y = args.output(0);
  for (size_t place = 0; place < y.data.size(); ++place) {
    const double rstd = rstd_of(in.data.data() + place / n * n, n, args.attrs.real("eps"));
    y.data[place] = in.data[place] * rstd * args.inputs[1].data[place % n];
  }
  return {y};
}

std::vector<Wide> backward(const RefArgs& args) {
  const Wide &dy = args.inputs[0], &in = args.inputs[1], &w = args.inputs[2];
  const auto n = static_cast<size_t>(in.shape[-1]), rows = static_cast<size_t>(in.shape.num_rows());
  Wide dx = args.output(0), dw = args.output(1);
  dw.magnitude.assign(n, 0);
  for (size_t row = 0; row < rows; ++row) {
    const double* x_row = in.data.data() + row * n;
    const double rstd = rstd_of(x_row, n, args.attrs.real("eps"));
    Dot mean;
    for (size_t i = 0; i < n; ++i) {
      const double term = dy.data[row * n + i] * x_row[i] * rstd;
      mean.add(term * w.data[i] / static_cast<double>(n));
      dw.data[i] += term;
      dw.magnitude[i] += std::fabs(term);
    }
    for (size_t i = 0; i < n; ++i) {
      const double g = dy.data[row * n + i] * w.data[i], z = x_row[i] * rstd;
      dx.data[row * n + i] = (g - z * mean.sum) * rstd;
      dx.magnitude.push_back((std::fabs(g) + std::fabs(z) * mean.size) * rstd);
    }
  }
  return {dx, dw};
}

}  // namespace

void rms_norm_cases(Tables& tables) {
  const auto with = [&](const char* label, Shape shape) {
    const auto n = static_cast<double>(shape[-1]), rows = static_cast<double>(shape.num_rows());
    const Shape weight{shape[-1]};
    tables.add({.op = &rms_norm_op,
                .label = label,
                .attrs = {{"eps", 1e-6}},
                .inputs = {x(shape), x(weight)},
                .errors = {reduction(n)},
                .reference = forward});
    tables.add({.op = &rms_norm_grad_op,
                .label = label,
                .attrs = {{"eps", 1e-6}},
                .inputs = {x(shape), x(shape), x(weight)},
                .errors = {reduction(n), reduction(rows + n)},
                .reference = backward});
  };
  with("one", Shape{1, 1});
  with("odd", Shape{3, 31});
  with("three_dims", Shape{2, 5, 33});
  with("blocks", Shape{65, 32});
  with("no_rows", Shape{0, 8});
  with("large", Shape{301, 193});
  const TensorType in{DType::kF32, Shape{2, 3}};
  const auto refuse = [&](const char* label, double eps, std::vector<TensorType> types) {
    tables.refuse(
        {.op = &rms_norm_op, .label = label, .attrs = {{"eps", eps}}, .inputs = std::move(types)});
  };
  refuse("no_weight", 1e-6, {in});
  refuse("other_weight", 1e-6, {in, {DType::kF32, Shape{2}}});
  refuse("other_type", 1e-6, {in, {DType::kF64, Shape{3}}});
  refuse("negative_eps", -1.0, {in, {DType::kF32, Shape{3}}});
}

}  // namespace wam::conformance
