// Tensors seen as [outer, bytes along and inside one dim]: what slice, pad_zeros and concat move.
#pragma once

#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam::cpu {

struct DimBlocks {
  int64_t outer;       // product of the dims before
  int64_t unit_bytes;  // bytes of one step along the dim
};

inline DimBlocks dim_blocks(const TensorType& type, int dim) {
  DimBlocks blocks{1, size_bytes(type.dtype)};
  for (int i = 0; i < dim; ++i) blocks.outer *= type.shape[i];
  for (int i = dim + 1; i < type.shape.ndim(); ++i) blocks.unit_bytes *= type.shape[i];
  return blocks;
}

// Blocks of `bytes` bytes, `count` of them, between two rows of strides.
struct BlockCopy {
  int64_t count, bytes, from_stride, to_stride;
};
inline void copy_blocks(const BlockCopy& c, const std::byte* from, std::byte* to) {
  if (c.bytes == 0) return;
  parallel_for(c.count, row_grain(c.bytes / 4), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * c.to_stride, from + i * c.from_stride, static_cast<size_t>(c.bytes));
    }
  });
}

inline void zero_blocks(const BlockCopy& c, std::byte* to) {
  if (c.bytes == 0) return;
  parallel_for(c.count, row_grain(c.bytes / 4), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memset(to + i * c.to_stride, 0, static_cast<size_t>(c.bytes));
    }
  });
}

}  // namespace wam::cpu
