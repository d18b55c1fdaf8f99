// For builds without CUDA or without CUPTI's headers.
#include "wam/base/error.h"
#include "wam/exec/cuda_trace.h"

namespace wam {

std::unique_ptr<DeviceTrace> DeviceTrace::begin() {
  throw DeviceError({.where = "trace",
                     .what = "this binary was built without CUPTI",
                     .remedy = "Build with a CUDA toolkit that has it, or leave the trace out."});
}

}  // namespace wam
