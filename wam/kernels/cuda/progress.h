// How far a stream has come, readable on the host also after a fault: a number in pinned memory
// that tiny kernels between the steps write.
#pragma once

#include <cuda_runtime_api.h>

namespace wam::cuda {

class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void begin(cudaStream_t stream) { reached(0, stream); }
  void reached(int step, cudaStream_t stream);
  int last() const { return *host_; }

 private:
  volatile int* host_ = nullptr;
  int* device_ = nullptr;
};

}  // namespace wam::cuda
