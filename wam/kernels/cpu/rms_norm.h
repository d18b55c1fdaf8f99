// Rows of RMSNorm, y = (x * rstd) * w with rstd = 1 / sqrt(mean(x^2) + eps), shared by every kernel
// that contains one, so that fused and plain forms round alike.
#pragma once

#include <cmath>
#include <cstdint>

#include "wam/kernels/cpu/support.h"

namespace wam::cpu {

// Gradients of the weight are summed over blocks of this many rows, then over the blocks in order.
constexpr int64_t kRmsBlockRows = 64;

template <typename T>
T rms_rstd(const T* x, int64_t n, double eps) {
  const T sum = ordered_sum<T>(n, [x](int64_t i) { return x[i] * x[i]; });
  return T{1} / std::sqrt(sum / static_cast<T>(n) + static_cast<T>(eps));
}

// y may be x.
template <typename T>
void rms_row(const T* x, const T* w, int64_t n, double eps, T* y) {
  const T rstd = rms_rstd(x, n, eps);
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] * rstd) * w[i];
}

// With g = dy * w and z = x * rstd: dx = (g - z * mean(g z)) * rstd, dw += dy * z. dx may be dy.
template <typename T>
void rms_grad_row(const T* dy, const T* x, const T* w, int64_t n, double eps, T* dx, T* dw) {
  const T rstd = rms_rstd(x, n, eps);
  const T sum = ordered_sum<T>(n, [=](int64_t i) { return (dy[i] * w[i]) * (x[i] * rstd); });
  const T mean = sum / static_cast<T>(n);
  for (int64_t i = 0; i < n; ++i) {
    const T z = x[i] * rstd;
    dw[i] += dy[i] * z;
    dx[i] = (dy[i] * w[i] - z * mean) * rstd;
  }
}

inline int64_t rms_blocks(int64_t rows) { return (rows + kRmsBlockRows - 1) / kRmsBlockRows; }

// out[i] = sum over blocks, in order, of partials[block * stride + i].
template <typename T>
void sum_blocks(const T* partials, int64_t blocks, int64_t stride, int64_t n, T* out) {
  parallel_for(n, 1024, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      for (int64_t i = begin; i < end; ++i) out[i] += partials[block * stride + i];
    }
  });
}

}  // namespace wam::cpu
