#include "wam/train/device.h"

#include <charconv>
#include <optional>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/exec/cuda.h"

namespace wam::train {
namespace {

// The number behind "cuda:"; 0 for "cuda"; nothing for another name.
std::optional<int> gpu_number(const std::string& device) {
  constexpr std::string_view kPrefix = "cuda:";
  if (device == "cuda") return 0;
  if (!device.starts_with(kPrefix)) return std::nullopt;
  int number = -1;
  const char* end = device.data() + device.size();
  const auto [at, error] = std::from_chars(device.data() + kPrefix.size(), end, number);
  return error == std::errc() && at == end && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

void check_device_name(const std::string& where, const std::string& name) {
  if (name == "cpu" || is_cuda(name)) return;
  throw ConfigError({.where = where,
                     .what = "unknown device",
                     .got = quote(name),
                     .expected = "cpu, cuda or cuda:N with the number of a GPU",
                     .remedy = "Choose one of these."});
}

bool is_cuda(const std::string& device) { return gpu_number(device).has_value(); }

const Target& target_of(const std::string& device) {
  return is_cuda(device) ? cuda_target() : cpu_target();
}

std::unique_ptr<Device> open_device(const std::string& device, const std::string& algorithms) {
  check_device_name("device", device);
  if (const auto number = gpu_number(device)) {
    return make_cuda_device({.device = *number, .algorithms = algorithms});
  }
  return make_cpu_device();
}

}  // namespace wam::train
