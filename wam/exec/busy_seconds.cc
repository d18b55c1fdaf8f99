#include <algorithm>

#include "wam/exec/cuda_trace.h"

namespace wam {

double busy_seconds(const std::vector<DeviceActivity>& activities) {
  std::vector<DeviceActivity> sorted = activities;
  std::ranges::sort(sorted, {}, &DeviceActivity::begin);
  double total = 0, covered = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double from = i == 0 ? sorted[i].begin : std::max(sorted[i].begin, covered);
    total += std::max(0.0, sorted[i].end - from);
    covered = i == 0 ? sorted[i].end : std::max(covered, sorted[i].end);
  }
  return total;
}

}  // namespace wam
