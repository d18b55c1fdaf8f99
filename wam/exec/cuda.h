// The CUDA device. Target and workspace sizes need no GPU and exist in every build;
// make_cuda_device() throws DeviceError where the build has no CUDA, or there is no GPU, the driver
// is too old, or the build holds no code for the GPU.
#pragma once

#include <memory>
#include <string>

#include "wam/exec/executor.h"

namespace wam {

struct CudaOptions {
  int device = 0;
  // A table made by cuda_algorithms(): the products' algorithms of an earlier run, so that the bits
  // stay the same. Empty: cuBLASLt's first choice each, or what tuning chooses.
  std::string algorithms = {};
};

std::unique_ptr<Device> make_cuda_device(const CudaOptions& options = {});
const Target& cuda_target();
// The algorithms in use by any program of this process, as text; empty where the build has no CUDA.
std::string cuda_algorithms();

}  // namespace wam
