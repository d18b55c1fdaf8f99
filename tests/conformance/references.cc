#include "tests/conformance/references.h"

#include <algorithm>
#include <numbers>

#include "tests/conformance/run_kernel.h"
#include "wam/ops/op_list.h"
#include "wam/ops/rules.h"

namespace wam::conformance {

Reference map1(Function1 f, Function1 size) {
  return [=](const RefArgs& args) {
    Wide y = args.output(0);
    for (size_t i = 0; i < y.data.size(); ++i) {
      const double x = args.inputs[0].data[i];
      y.data[i] = f(x);
      if (size != nullptr) y.magnitude.push_back(size(x));
    }
    return std::vector<Wide>{y};
  };
}

Reference map2(Function2 f, Function2 size) {
  return [=](const RefArgs& args) {
    Wide y = args.output(0);
    const Wide &a = args.inputs[0], &b = args.inputs[1];
    for (size_t i = 0; i < y.data.size(); ++i) {
      const double second = b.data[i % b.data.size()];
      y.data[i] = f(a.data[i], second);
      if (size != nullptr) y.magnitude.push_back(size(a.data[i], second));
    }
    return std::vector<Wide>{y};
  };
}

void for_each(const Shape& shape, const std::function<void(const Index&, size_t)>& f) {
  const auto count = static_cast<size_t>(shape.num_elements());
  Index index(static_cast<size_t>(shape.ndim()), 0);
  for (size_t place = 0; place < count; ++place) {
    f(index, place);
    for (int dim = shape.ndim() - 1; dim >= 0; --dim) {
      if (++index[static_cast<size_t>(dim)] < shape[dim]) break;
      index[static_cast<size_t>(dim)] = 0;
    }
  }
}

size_t flat(const Shape& shape, const Index& index) {
  int64_t place = 0;
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    place = place * shape[dim] + index[static_cast<size_t>(dim)];
  }
  return static_cast<size_t>(place);
}

Reference gather(std::function<Index(const RefArgs&, const Index&)> from) {
  return [from = std::move(from)](const RefArgs& args) {
    Wide y = args.output(0);
    for_each(y.shape, [&](const Index& index, size_t place) {
      const Index source = from(args, index);
      if (!source.empty() || args.inputs[0].shape.ndim() == 0) {
        y.data[place] = args.inputs[0].data[flat(args.inputs[0].shape, source)];
      }
    });
    return std::vector<Wide>{y};
  };
}

double silu_of(double x) { return x / (1 + std::exp(-x)); }
double silu_slope(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s * (1 + x * (1 - s));
}

namespace {
double inner(double x) { return std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x); }
}  // namespace
// (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), which does not cancel.
double gelu_tanh_of(double x) { return x / (1 + std::exp(-2 * inner(x))); }
double gelu_tanh_slope(double x) {
  const double t = std::tanh(inner(x));
  const double slope = std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}
double gelu_erf_of(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }
double gelu_erf_slope(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) +
         x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
}

size_t table_place(const RefArgs& args, const Shape& x, const Shape& table, size_t index,
                   size_t place) {
  const auto d = static_cast<size_t>(x[2]), length = static_cast<size_t>(x[1]);
  const size_t row = place / d;
  const auto t = static_cast<size_t>(args.inputs[index].data[row % length]);
  return (row / length * static_cast<size_t>(table[1]) + t) * d + place % d;
}

RowNorm row_norm(const double* x, int64_t n, double eps) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i)
    variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
  const double rstd = 1 / std::sqrt(variance + eps);
  return {mean, rstd, std::fabs(mean) * rstd};
}

RowGradient row_gradient(const std::vector<double>& g, const double* x, double mean, double rstd) {
  RowGradient r;
  const auto n = static_cast<double>(g.size());
  Dot g_mean, gz_mean;
  for (size_t i = 0; i < g.size(); ++i) {
    r.z.push_back((x[i] - mean) * rstd);
    r.z_size.push_back((std::fabs(x[i]) + std::fabs(mean)) * rstd);
    g_mean.add(g[i] / n);
    gz_mean.add(g[i] * r.z[i] / n);
    gz_mean.size += std::fabs(g[i]) * r.z_size[i] / n;
  }
  for (size_t i = 0; i < g.size(); ++i) {
    r.dx.push_back((g[i] - g_mean.sum - r.z[i] * gz_mean.sum) * rstd);
    r.dx_size.push_back((std::fabs(g[i]) + g_mean.size + r.z_size[i] * gz_mean.size) * rstd);
  }
  return r;
}

Input layer_stats_of(size_t place, Shape shape, double eps) {
  return derived(shape, Role::kStat, [place, eps](std::span<const HostTensor> inputs) {
    const HostTensor& given = inputs[place];
    const HostTensor x = given.to(rules::grad_dtype(given.dtype()));
    return run_cpu(layer_norm_op, {{"affine", false}, {"eps", eps}}, std::span(&x, 1))[1];
  });
}

}  // namespace wam::conformance
