// The device a config or a command line names: "cpu", "cuda" (the first GPU) or "cuda:N".
#pragma once

#include <memory>
#include <string>

#include "wam/exec/executor.h"

namespace wam::train {

// Throws ConfigError for another name.
void check_device_name(const std::string& where, const std::string& name);
bool is_cuda(const std::string& device);
// What plans are made for; needs no device.
const Target& target_of(const std::string& device);
// Throws DeviceError where the build, the driver or the machine does not have it.
// `algorithms`: of products, see CudaOptions; a CPU has none.
std::unique_ptr<Device> open_device(const std::string& device, const std::string& algorithms = "");

}  // namespace wam::train
