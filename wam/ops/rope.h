// Rotary position embedding (Su et al. 2021): the pairs of consecutive channels of each head are
// rotated. x [..., L, D]; table [L, d/2, 2] holds (cos, sin), d = D / heads, in the statistics type
// (f64 for f64, else f32).
//   y[2i]   = x[2i] cos - x[2i+1] sin
//   y[2i+1] = x[2i] sin + x[2i+1] cos
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// `inverse` rotates the other way, which is also the gradient.
ValueId rope(Builder& b, ValueId x, ValueId table, int64_t heads, bool inverse = false);

}  // namespace wam
