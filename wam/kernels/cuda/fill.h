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
void launch_fill_uniform(const FillArgs& args, cudaStream_t stream);

}  // namespace wam::cuda
