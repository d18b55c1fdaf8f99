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

// Adds up rows of partial sums, in order. A job's rows lie at from + row * stride; they are all
// `rows` of them, or, with `segments`, those of each segment, which has a result row of its own.
struct PartSums {
  static constexpr int kMostJobs = 8;
  struct Job {
    const float* from = nullptr;
    int64_t stride = 0;
    float* out = nullptr;
    const float* accumulator = nullptr;  // added to the sum, as `out`
  };
  int64_t columns = 0;
  int64_t rows = 0;  // blocks that made the parts
  int num_whole = 0, num_segmented = 0;
  Job whole[kMostJobs], segmented[kMostJobs];
  // Segments: tokens sorted by (sample, table row), `things` in all, shared out to the `rows`
  // blocks as share_begin() says; the part of block i for segment s is row i + s.
  int64_t batch = 1, length = 0, table_rows = 1;
  const int32_t* first = nullptr;  // [table_rows + 1]: first sorted token of each table row
};
void launch_part_sums(const PartSums& args, cudaStream_t stream);

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
