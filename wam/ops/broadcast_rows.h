// Repeats x over new leading dims: x [S] -> [..., S] with S a suffix of the result. The gradient of
// sum_rows.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x itself if it has the shape already.
ValueId broadcast_rows(Builder& b, ValueId x, const Shape& shape);

}  // namespace wam
