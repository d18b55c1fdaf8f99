// A new dim of `size` equal copies: x [P..., S...] -> [P..., size, S...], the new dim at position
// `dim`. The gradient of sum_dim. Any dtype.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// `dim` in [0, ndim of x].
ValueId broadcast_dim(Builder& b, ValueId x, int dim, int64_t size);

}  // namespace wam
