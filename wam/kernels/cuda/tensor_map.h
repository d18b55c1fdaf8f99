// Descriptions of tensors for Hopper's copy engine.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace wam::cuda {

// bf16; the first dim contiguous. Boxes of 64 elements of the first dim (128 bytes, swizzled in
// 16-byte pieces by the row's number modulo 8); zeros outside of the tensor.
struct TensorMapSpec {
  int dims = 0;
  uint64_t sizes[5] = {};
  uint64_t strides[4] = {};  // bytes, of the dims from the second on
  uint32_t box[5] = {}, steps[5] = {};
};
CUtensorMap make_tensor_map(const void* base, const TensorMapSpec& spec);

int multiprocessor_count();

}  // namespace wam::cuda
