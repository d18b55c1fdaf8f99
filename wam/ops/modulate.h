// y[b,l] = x[b,l] * (1 + scale[b,t]) + shift[b,t] with t = index[l]: adaptive layer norm's second half.
// x [B, L, D]; scale, shift [B, T, D] st, one row for each distinct timestep; index i32 [L].
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// Throws GraphError if `index` is a constant with an entry outside [0, T).
ValueId modulate(Builder& b, ValueId x, ValueId scale, ValueId shift, ValueId index);

struct ModulateGrad {
  ValueId x;             // as x
  ValueId scale, shift;  // [B, T, D] st; zero rows where no token points
};
ModulateGrad modulate_grad(Builder& b, ValueId dy, ValueId x, ValueId scale, ValueId index);

}  // namespace wam
