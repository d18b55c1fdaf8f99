// Chosen rows of every sample: x [B, L, ...], index i32 [M] -> y [B, M, ...], y[b, m] = x[b, index[m]].
// No row may be taken twice: the gradient writes, it does not add. Any dtype.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// Throws GraphError if `index` is a constant with a repeated or out-of-range row.
ValueId take_rows(Builder& b, ValueId x, ValueId index);

}  // namespace wam
