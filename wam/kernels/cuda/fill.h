// Uniform random numbers straight into device memory; Memory::fill_uniform() says which ones.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/tensor/dtype.h"

namespace wam::cuda {

struct FillArgs {
  void* out = nullptr;
  int64_t count = 0;
  DType dtype = DType::kF32;  // or bf16
  float low = 0, high = 0;
  uint64_t seed = 0;
};
// Memory::draw_uniform() says what; words as wam/base/random_stream.h has them.
struct DrawArgs {
  void* out = nullptr;
  void* rest = nullptr;  // i16: the lower halves of split values; out is then bf16, the upper ones
  int64_t count = 0;
  DType dtype = DType::kF32;  // or bf16
  uint32_t key0 = 0, key1 = 0, step = 0;
  uint64_t index = 0;
  double low = 0, high = 0;
};
void launch_draw_uniform(const DrawArgs& args, cudaStream_t stream);
void launch_fill_uniform(const FillArgs& args, cudaStream_t stream);

}  // namespace wam::cuda
