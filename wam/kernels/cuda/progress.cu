#include "wam/kernels/cuda/progress.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

__global__ void progress_kernel(int* number, int step) { *number = step; }

}  // namespace

Progress::Progress() {
  void *host = nullptr, *device = nullptr;
  check(cudaHostAlloc(&host, sizeof(int), cudaHostAllocMapped), "pinned memory for progress");
  check(cudaHostGetDevicePointer(&device, host, 0), "pinned memory for progress");
  host_ = static_cast<int*>(host);
  device_ = static_cast<int*>(device);
  *host_ = 0;
}

Progress::~Progress() { cudaFreeHost(const_cast<int*>(host_)); }

void Progress::reached(int step, cudaStream_t stream) {
  progress_kernel<<<1, 1, 0, stream>>>(device_, step);
  check_launch("progress");
}

}  // namespace wam::cuda
