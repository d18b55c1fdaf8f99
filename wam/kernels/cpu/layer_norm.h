// Rows of layer normalisation, shared by every kernel that contains one, so that fused and plain
// forms round alike: n = (x - mean) * rstd.
#pragma once

#include <cmath>

#include "wam/kernels/cpu/support.h"

namespace wam::cpu {

template <typename T>
struct RowStats {
  T mean, rstd;
};

// Two passes: the variance is taken around the mean.
template <typename T>
RowStats<T> layer_stats(const T* x, int64_t n, double eps) {
  const T mean = ordered_sum<T>(n, [x](int64_t i) { return x[i]; }) / static_cast<T>(n);
  const T squares = ordered_sum<T>(n, [x, mean](int64_t i) {
    const T d = x[i] - mean;
    return d * d;
  });
  return {mean, T{1} / std::sqrt(squares / static_cast<T>(n) + static_cast<T>(eps))};
}

template <typename T>
T normalized(T x, const RowStats<T>& stats) {
  return (x - stats.mean) * stats.rstd;
}

// With g(i) the gradient of n[i]: store(i, (g - mean(g) - n * mean(g n)) * rstd).
template <typename T, typename G, typename Store>
void layer_grad_row(const G& g, const T* x, const RowStats<T>& stats, int64_t n,
                    const Store& store) {
  const T mean_g = ordered_sum<T>(n, g) / static_cast<T>(n);
  const T sum = ordered_sum<T>(n, [&](int64_t i) { return g(i) * normalized(x[i], stats); });
  const T mean_gn = sum / static_cast<T>(n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    store(i, (g(i) - mean_g - normalized(x[i], stats) * mean_gn) * stats.rstd);
  }
}

// Rows are taken in blocks of this many, each with its own sums of dw and db [2, n]; the sums of
// the blocks are then added in order (sum_blocks).
constexpr int64_t kLayerNormBlockRows = 64;

template <typename T>
void add_affine_grads(const T* dy, const T* x, const RowStats<T>& stats, int64_t n, T* sums) {
  T *dw = sums, *db = sums + n;
  for (int64_t i = 0; i < n; ++i) dw[i] += dy[i] * normalized(x[i], stats);
  for (int64_t i = 0; i < n; ++i) db[i] += dy[i];
}

}  // namespace wam::cpu
