// y = x * (sqrt(C) / max(||x||, 1e-12)) * gamma for each row, then SiLU if asked for. y may be x.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wam/tensor/dtype.h"

namespace wam::cuda {

void launch_channel_norm(DType dtype, int64_t rows, int64_t channels, bool silu, const void* x,
                         const void* gamma, void* y, cudaStream_t stream);

}  // namespace wam::cuda
