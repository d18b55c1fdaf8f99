// Sums over leading dims: x [..., S] -> [S], where S is a suffix of x's shape. The gradient of a
// broadcast. Accumulates in float32 (float64 for f64) in ascending row order.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x itself if its shape is `suffix` already.
ValueId sum_rows(Builder& b, ValueId x, const Shape& suffix);

}  // namespace wam
