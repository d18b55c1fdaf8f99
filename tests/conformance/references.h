// Helpers for references: plain loops in float64, written without the kernels' tricks.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tests/conformance/cases.h"

namespace wam::conformance {

// y[i] = f(x[i]); `size` is what the terms of a result add up to, |y| if absent.
using Function1 = double (*)(double);
Reference map1(Function1 f, Function1 size = nullptr);
// y[i] = f(a[i], b[i]), b repeated over a's leading dims.
using Function2 = double (*)(double, double);
Reference map2(Function2 f, Function2 size = nullptr);

using Index = std::vector<int64_t>;
// f(index, flat place) for every element of the shape.
void for_each(const Shape& shape, const std::function<void(const Index&, size_t)>& f);
size_t flat(const Shape& shape, const Index& index);

// y[index] = x[from(index)], zero where `from` gives an empty index. One input, one output.
Reference gather(std::function<Index(const RefArgs&, const Index&)> from);

// A matrix product's entry: sum over p of a(p) b(p), and of absolute values.
struct Dot {
  double sum = 0, size = 0;
  void add(double term) {
    sum += term;
    size += std::fabs(term);
  }
};

// x / (1 + exp(-x)) and the like, with their derivatives, from the textbook.
double silu_of(double x);
double silu_slope(double x);
double gelu_tanh_of(double x);
double gelu_tanh_slope(double x);
double gelu_erf_of(double x);
double gelu_erf_slope(double x);

// The place in a table [B, T, D] that belongs to element `place` of x [B, L, D], input `index`
// being the map from tokens to rows of the table.
size_t table_place(const RefArgs& args, const Shape& x, const Shape& table, size_t index,
                   size_t place);

// Layer norm of one row of n: mean, 1/sqrt(var + eps), and how far the mean lies from zero, in
// deviations: what cancels in x - mean.
struct RowNorm {
  double mean, rstd, offset;
};
RowNorm row_norm(const double* x, int64_t n, double eps);
// Layer norm's gradient for one row, given the gradient g of the normalised row and saved
// statistics. Sizes are sums of absolute terms, what cancels in x - mean included.
struct RowGradient {
  std::vector<double> dx, dx_size;
  std::vector<double> z, z_size;  // the normalised row
};
RowGradient row_gradient(const std::vector<double>& g, const double* x, double mean, double rstd);
// Statistics of input `place` as the CPU kernel layer_norm gives them: an input of gradients.
Input layer_stats_of(size_t place, Shape shape, double eps);

}  // namespace wam::conformance
