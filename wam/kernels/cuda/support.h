// Shared by the CUDA kernels' host side: wrapping a function as a Kernel, launch checks, grid
// sizes.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "wam/base/check.h"
#include "wam/kernels/kernel.h"

namespace wam::cuda {

template <typename F>
std::unique_ptr<Kernel> make_kernel(F run) {
  struct FunctionKernel final : Kernel {
    explicit FunctionKernel(F f) : function(std::move(f)) {}
    void run(const KernelIo& io) override { function(io); }
    F function;
  };
  return std::make_unique<FunctionKernel>(std::move(run));
}

inline cudaStream_t stream_of(const KernelIo& io) { return static_cast<cudaStream_t>(io.stream); }

// DeviceError naming `what` if the status, or the last launch, is an error.
void check(cudaError_t status, const char* what);
void check_launch(const char* kernel);

// Input 0 to output 0, which may be the same.
inline void copy_bytes(const KernelIo& io, int64_t bytes) {
  if (io.inputs[0] == io.outputs[0] || bytes == 0) return;
  check(cudaMemcpyAsync(io.outputs[0], io.inputs[0], static_cast<size_t>(bytes),
                        cudaMemcpyDeviceToDevice, stream_of(io)),
        "copy");
}

// GPU kernels compute in f32 and bf16; InternalError for another type.
void check_float(DType dtype);
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Blocks for `count` items at `per_block` each; loops in the kernels take the rest.
inline unsigned grid_for(int64_t count, int64_t per_block) {
  constexpr int64_t kMostBlocks = 132 * 32;
  return static_cast<unsigned>(std::clamp<int64_t>(ceil_div(count, per_block), 1, kMostBlocks));
}

inline bool aligned16(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

}  // namespace wam::cuda
