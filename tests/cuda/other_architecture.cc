// Linked with kernels for another architecture alone: opening the device must say so, with the remedy,
// before anything else is tried. Skips aloud without a GPU.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <string>

#include "wam/base/error.h"
#include "wam/exec/cuda.h"

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    fmt::print("SKIPPED: no GPU, so none was refused\n");
    return 0;
  }
  try {
    wam::make_cuda_device();
  } catch (const wam::DeviceError& error) {
    const std::string text = error.what();
    const bool right = text.find("holds no code for the GPU") != std::string::npos &&
                       text.find("WAM_CUDA_GENCODE") != std::string::npos;
    fmt::print("{}: {}\n", right ? "ok" : "FAILED", text);
    return right ? 0 : 1;
  }
  fmt::print("FAILED: the device was opened\n");
  return 1;
}
