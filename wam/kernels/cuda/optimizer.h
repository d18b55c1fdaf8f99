// AdamW on flat buffers. The master weight is f32, or split: its nearest bf16 (ties away from zero)
// and the signed 16 bits that are left, master bits = (high << 16) + low.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/tensor/dtype.h"

namespace wam::cuda {

struct AdamwArgs {
  int64_t count = 0;
  double beta1 = 0, beta2 = 0, eps = 0;
  DType g_dtype = DType::kF32;
  const void* g = nullptr;
  const float* scalars = nullptr;  // as ops/adamw.h lays them out
  const float *m = nullptr, *v = nullptr;
  float *m_out = nullptr, *v_out = nullptr;
  // Either p or the two halves.
  const float* p = nullptr;
  float* p_out = nullptr;
  const void *high = nullptr, *low = nullptr;
  void *high_out = nullptr, *low_out = nullptr;
};
void launch_adamw(const AdamwArgs& args, cudaStream_t stream);

// schedule with the clip factor and the skip flag put in; see ops/adamw_scalars.h.
void launch_adamw_scalars(const float* schedule, const float* norm_squared, double max_norm,
                          float* out, cudaStream_t stream);

}  // namespace wam::cuda
