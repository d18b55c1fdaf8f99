// In place of the CUDA device where the build has no CUDA.
#include "wam/base/error.h"
#include "wam/exec/cuda.h"

namespace wam {

std::unique_ptr<Device> make_cuda_device(const CudaOptions&) {
  throw DeviceError({.where = "device",
                     .what = "this binary was built without CUDA",
                     .got = "cuda",
                     .remedy = "Set device: cpu, or configure with -DWAM_CUDA=ON."});
}

std::string cuda_algorithms() { return {}; }

}  // namespace wam
