// Actions relative to the robot's state at the first row of their block, for the keys that an
// embodiment lists; the others stay absolute.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wam::data {

// For each action dim the state dim it is relative to, or -1.
using RelativeDims = std::vector<int64_t>;

// rows [n, dims.size()] in place: minus, or plus, state[dims[d]].
void make_relative(const RelativeDims& dims, std::span<const float> state, std::span<float> rows);
void make_absolute(const RelativeDims& dims, std::span<const double> state, std::span<double> rows);

}  // namespace wam::data
