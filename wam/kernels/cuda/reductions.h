// Sums in a fixed order: parts of fixed size first, then the parts in order. No atomics.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/kernels/cuda/workspace.h"
#include "wam/tensor/dtype.h"

namespace wam::cuda {

// out[c] = accumulator[c] (if any) + sum over rows of x[row, c].
struct ColumnSums {
  const void* x = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0, columns = 0;
  void* out = nullptr;
  DType out_dtype = DType::kF32;
  const float* accumulator = nullptr;
  void* workspace = nullptr;  // column_sums_workspace(rows, columns)
};
void launch_column_sums(const ColumnSums& args, cudaStream_t stream);

// Adds up rows of partial sums. Row r of segment s of sample b lies at
// partials + ((b * batch_stride + r) * row_stride) + offset.
struct SegmentSums {
  const float* partials = nullptr;
  int64_t columns = 0, row_stride = 0;
  int64_t batch = 1, batch_stride = 0;  // in rows
  const int32_t* first = nullptr;       // [segments + 1] first row of each; null: one of `rows`
  int64_t segments = 1, rows = 0;
  bool join = false;    // one result from all samples and segments
  void* out = nullptr;  // [batch, segments, columns], or [columns] with `join`
  DType out_dtype = DType::kF32;
  const float* accumulator = nullptr;
};
void launch_segment_sums(const SegmentSums& args, cudaStream_t stream);

// Sum over the middle dim of [outer, size, inner].
void launch_sum_dim(DType dtype, const void* x, int64_t outer, int64_t size, int64_t inner, void* y,
                    cudaStream_t stream);
// Scalar f32; workspace sum_squares_workspace().
void launch_sum_squares(DType dtype, const void* x, int64_t count, float* out, void* workspace,
                        cudaStream_t stream);

struct WeightedMseArgs {
  const void *pred = nullptr, *target = nullptr;
  DType pred_dtype = DType::kF32, target_dtype = DType::kF32;
  const float *row_weight = nullptr, *mask = nullptr;  // mask may be null
  const int32_t* index = nullptr;
  int64_t batch = 0, length = 0, width = 0, num_rows = 0;
  float scale = 1;
};
void launch_weighted_mse(const WeightedMseArgs& args, float* loss, void* workspace,
                         cudaStream_t stream);
void launch_weighted_mse_grad(const WeightedMseArgs& args, const float* dloss, void* dpred,
                              cudaStream_t stream);

}  // namespace wam::cuda
