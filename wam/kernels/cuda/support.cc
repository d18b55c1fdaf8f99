#include "wam/kernels/cuda/support.h"

#include <string>

#include "wam/base/error.h"

namespace wam::cuda {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it if it can be cleared
  throw DeviceError(
      {.where = what,
       .what = "CUDA reports an error",
       .got = std::string(cudaGetErrorName(status)) + ": " + cudaGetErrorString(status),
       .remedy = "Check the GPU with nvidia-smi; after a fault inside a kernel the process must be "
                 "started again."});
}

void check_launch(const char* kernel) { check(cudaPeekAtLastError(), kernel); }

void check_float(DType dtype) {
  WAM_CHECK(dtype == DType::kF32 || dtype == DType::kBF16)
      << "CUDA kernels compute in f32 or bf16, not " << name(dtype);
}

}  // namespace wam::cuda
