// Sizes and epilogues of matrix products with a weight: shared by linear and its fused forms, which
// therefore give the same bits.
#pragma once

#include "wam/kernels/cpu/gemm.h"
#include "wam/kernels/cpu/support.h"

namespace wam::cpu {

// Rows of x, N and K of the weight, and how it is stored.
struct LinearSizes {
  int64_t rows, n, k;
  bool kn;
  int64_t weight_stride() const { return kn ? n : k; }
};

// Input 0 has the rows, input 1 is the weight.
inline LinearSizes linear_sizes(const KernelSignature& s) {
  const bool kn = s.attrs.flag("kn");
  const Shape& w = s.inputs[1].shape;
  return {s.inputs[0].shape.num_rows(), kn ? w[1] : w[0], kn ? w[0] : w[1], kn};
}

// y [rows, N] = x W^T, then epilogue(tile).
template <typename T, typename Epilogue>
void linear_forward(const LinearSizes& z, const T* x, const T* w, T* y, const Epilogue& epilogue) {
  gemm(GemmShape{z.rows, z.n, z.k, false, !z.kn},
       GemmOperands<T>{x, z.k, w, z.weight_stride(), y, z.n}, epilogue);
}

// dx [rows, K] = dy W, then epilogue(tile).
template <typename T, typename Epilogue>
void linear_backward(const LinearSizes& z, const T* dy, const T* w, T* dx,
                     const Epilogue& epilogue) {
  gemm(GemmShape{z.rows, z.k, z.n, false, z.kn},
       GemmOperands<T>{dy, z.n, w, z.weight_stride(), dx, z.k}, epilogue);
}

// y += bias on one row of a tile; `bias` may be null.
template <typename T>
void add_bias(const GemmTile& tile, const T* bias, T* row) {
  if (bias == nullptr) return;
  for (int64_t i = tile.col; i < tile.col + tile.cols; ++i) row[i] += bias[i];
}

}  // namespace wam::cpu
