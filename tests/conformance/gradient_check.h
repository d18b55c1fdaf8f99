// Gradients of an op against central differences in float64.
#pragma once

#include <string>

#include "tests/conformance/cases.h"

namespace wam::conformance {

struct GradientReport {
  bool ok = true;
  int64_t checked = 0;     // elements compared
  double worst_ratio = 0;  // largest |difference| / bound
  std::string worst;       // where that was
};

// The loss is a weighted sum of the op's differentiable outputs. Between 4 and 24 elements of
// each differentiable input are moved by h and h/2; the bound is made of the difference between the
// two quotients (truncation) and of rounding over h.
GradientReport check_gradient(const Case& c);

}  // namespace wam::conformance
