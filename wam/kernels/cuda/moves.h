// Moving elements about without arithmetic: any dtype, by bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/tensor/shape.h"

namespace wam::cuda {

// y block i = x block i, where blocks lie at the given strides. All in bytes.
struct BlockCopy {
  int64_t blocks = 0, bytes = 0, x_stride = 0, y_stride = 0;
};
void launch_copy_blocks(const BlockCopy& copy, const void* x, void* y, cudaStream_t stream);

// Several copies in one launch: as launch_copy_blocks of each, to `y` + offset.
struct PartCopy {
  static constexpr int kMostParts = 8;
  int num_parts = 0;
  BlockCopy copy[kMostParts];
  int64_t offset[kMostParts] = {};
  const void* x[kMostParts] = {};
};
void launch_copy_parts(const PartCopy& parts, void* y, cudaStream_t stream);

// Bytes of a block as seen from `dim`: outer blocks of `unit` bytes for each index of the dim.
struct DimBlocks {
  int64_t outer = 1, unit = 0;
};
DimBlocks dim_blocks(const TensorType& type, int dim);

// y[b, m] = x[b, index[m]] (take) or y[b, index[m]] = x[b, m] (put); rows of `bytes`.
struct RowMove {
  int64_t batch = 0, moved = 0, x_rows = 0, y_rows = 0, bytes = 0;
  bool put = false;
};
void launch_move_rows(const RowMove& move, const void* x, const int32_t* index, void* y,
                      cudaStream_t stream);

// y row i = x row (i / repeat) % period: broadcasts.
struct RowRepeat {
  int64_t rows = 0, repeat = 1, period = 1, bytes = 0;
};
void launch_repeat_rows(const RowRepeat& repeat, const void* x, void* y, cudaStream_t stream);

// Dim i of y is dim perm[i] of x.
struct Permutation {
  int ndim = 0;
  int64_t size[Shape::kMaxDims] = {}, x_stride[Shape::kMaxDims] = {};  // of y's dims, in elements
  int64_t count = 0;
};
void launch_permute(const Permutation& permutation, int64_t element_bytes, const void* x, void* y,
                    cudaStream_t stream);

void launch_upsample2x(int64_t frames, int64_t height, int64_t width, int64_t bytes, const void* x,
                       void* y, cudaStream_t stream);

}  // namespace wam::cuda
