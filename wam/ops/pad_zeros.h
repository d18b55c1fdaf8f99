// Zeros put before and after the elements along one dim: the gradient of slice. Any dtype.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x itself if nothing is added. A negative `dim` counts from the end.
ValueId pad_zeros(Builder& b, ValueId x, int dim, int64_t before, int64_t after);

}  // namespace wam
