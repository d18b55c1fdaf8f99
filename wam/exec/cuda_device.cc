#include <cuda_runtime_api.h>

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/exec/cuda.h"
#include "wam/exec/cuda_executor.h"
#include "wam/kernels/cuda/gemm.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

[[noreturn]] void refuse(std::string what, std::string got, std::string remedy) {
  throw DeviceError({.where = "cuda device",
                     .what = std::move(what),
                     .got = std::move(got),
                     .remedy = std::move(remedy)});
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void open_device(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0) {
      refuse("no NVIDIA driver is installed", "", "Set device: cpu, or install the driver.");
    }
    refuse("the driver is older than this binary's CUDA",
           "a driver for CUDA " + version_text(driver), "Update the NVIDIA driver to one for CUDA " +
           version_text(CUDART_VERSION) + " or newer.");
  }
  if (status != cudaSuccess || count == 0) {
    refuse("no GPU can be used", cudaGetErrorString(status),
           "Set device: cpu, or check nvidia-smi.");
  }
  if (device < 0 || device >= count) {
    refuse("there is no such GPU", std::to_string(device),
           "Choose one of the " + std::to_string(count) + " GPUs, from 0.");
  }
  cuda::check(cudaSetDevice(device), "cudaSetDevice");
}

// Runs one kernel: a build without code for this GPU shows here and not in the middle of a step.
void check_code(const cudaDeviceProp& properties) {
  const std::string architecture =
      "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
  void* scratch = nullptr;
  cuda::check(cudaMalloc(&scratch, 256), "cudaMalloc");
  try {
    cuda::fill_for_timing(scratch, 256, nullptr);
    cuda::check(cudaStreamSynchronize(nullptr), "the first kernel");
  } catch (const DeviceError& error) {
    cudaFree(scratch);
    refuse("this binary holds no code for the GPU",
           std::string(properties.name) + ", " + architecture,
           "Configure with -DWAM_CUDA_GENCODE for it (" + error.info().got + ").");
  }
  cudaFree(scratch);
  if (properties.major != 9 || properties.minor != 0) {
    log_warn(std::string(properties.name) + " (" + architecture +
             ") runs the generic kernels, which are compiled but untested there");
  }
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const CudaOptions& options) : options_(options) {
    open_device(options.device);
    cuda::check(cudaGetDeviceProperties(&properties_, options.device), "cudaGetDeviceProperties");
    check_code(properties_);
    if (!options_.algorithms.empty()) cuda::parse_algorithms(options_.algorithms);
  }

  std::string name() const override {
    return "cuda:" + std::to_string(options_.device) + " " + properties_.name;
  }
  const Target& target() const override { return cuda_target(); }

  int64_t free_bytes() const override {
    size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<int64_t>(free);
  }

  int64_t total_bytes() const override { return static_cast<int64_t>(properties_.totalGlobalMem); }

  std::shared_ptr<Memory> allocate(const MemoryPlan& plan) override {
    const int64_t wanted = plan.total_bytes();
    if (wanted > total_bytes()) {
      throw PlanError(
          {.where = name(),
           .what = "the plan is larger than the card's memory",
           .got = std::to_string(wanted) + " bytes",
           .expected = "at most " + std::to_string(total_bytes()) + " bytes",
           .remedy = "Lower micro_batch_size or set recompute: full."});
    }
    if (wanted > free_bytes()) {
      refuse("the card's memory is held by another process",
             std::to_string(free_bytes()) + " bytes free, " + std::to_string(wanted) + " wanted",
             "End the other process, lower micro_batch_size or set recompute: full.");
    }
    return std::make_shared<CudaMemory>(plan);
  }

  std::unique_ptr<Executor> load(const Program& program, std::shared_ptr<Memory> memory,
                                 const ExecOptions& options) override {
    auto device_memory = std::dynamic_pointer_cast<CudaMemory>(memory);
    WAM_CHECK(device_memory != nullptr) << "memory of another device";
    return make_cuda_executor(program, std::move(device_memory), options);
  }

 private:
  CudaOptions options_;
  cudaDeviceProp properties_{};
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(const CudaOptions& options) {
  return std::make_unique<CudaDevice>(options);
}

std::string cuda_algorithms() { return cuda::format_algorithms(); }

}  // namespace wam
