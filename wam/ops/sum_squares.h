// Sum of the squares of all elements, a scalar in st. Fixed order; accumulates in float64 on CPU.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId sum_squares(Builder& b, ValueId x);

}  // namespace wam
