// RMSNorm over parts of rows, with a rotation of channel pairs: qk_norm_rope and rms_norm. Rows
// hold `parts` parts of `width` elements; the first `normed` are normalised, the others copied.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/kernels/cuda/workspace.h"
#include "wam/tensor/dtype.h"

namespace wam::cuda {

constexpr int kMostNormed = 4;

struct QkRows {
  int64_t rows = 0, length = 1, parts = 1, width = 0, normed = 1, heads = 1;
  float eps = 0;
  const void* weights[kMostNormed] = {};
  const float* table = nullptr;  // [length, width/heads/2, 2]: cos, sin; null: no rotation
};
// y may be x.
void launch_qk_rows_forward(DType dtype, const QkRows& args, const void* x, void* y,
                            cudaStream_t stream);
// dx may be dy. dweights: f32 [width] each. dcolumns: f32 [parts * width], sums of dx's columns,
// before they are rounded: the gradient of the bias of what made x.
struct QkRowsGrad {
  const void *dy = nullptr, *x = nullptr;
  const void* dy2 = nullptr;  // added to dy if not null
  void* dx = nullptr;
  float* dweights[kMostNormed] = {};
  float* dcolumns = nullptr;
  void* workspace = nullptr;  // qk_rows_workspace()
};
void launch_qk_rows_backward(DType dtype, const QkRows& args, const QkRowsGrad& grad,
                             cudaStream_t stream);

// Rotation alone.
void launch_rope(DType dtype, const void* x, const float* table, int64_t rows, int64_t length,
                 int64_t width, int64_t heads, bool inverse, void* y, cudaStream_t stream);

}  // namespace wam::cuda
