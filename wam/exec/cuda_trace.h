// What a GPU executes and when, by CUPTI's activity records: the kernels, copies and fills inside
// captured graphs too. CUPTI comes with the toolkit and is loaded when asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace wam {

struct DeviceActivity {
  std::string name;           // a kernel's function, or "copy" or "fill"
  double begin = 0, end = 0;  // seconds on the device's clock
};

// Records from construction to end(), which must follow a synchronisation. One at a time in a
// process. Recording makes launches slower, and what lies between kernels longer; the kernels' own
// times are those of the hardware.
class DeviceTrace {
 public:
  // Throws DeviceError if the build has no CUDA or CUPTI, or CUPTI cannot be loaded.
  static std::unique_ptr<DeviceTrace> begin();
  virtual ~DeviceTrace() = default;
  // In order of their beginning. Throws DeviceError if records were lost.
  virtual std::vector<DeviceActivity> end() = 0;
};

// Seconds in which at least one of the activities ran.
double busy_seconds(const std::vector<DeviceActivity>& activities);

}  // namespace wam
