// Sum over one dim, which is dropped. Accumulates in float32 (float64 for f64), in a fixed order.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// A negative `dim` counts from the end.
ValueId sum_dim(Builder& b, ValueId x, int dim);

}  // namespace wam
