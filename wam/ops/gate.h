// y[b,l] = x[b,l] * g[b, index[l]]. x [B, L, D]; g [B, T, D] st; index i32 [L].
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// Throws GraphError if `index` is a constant with an entry outside [0, T).
ValueId gate(Builder& b, ValueId x, ValueId g, ValueId index);

struct GateGrad {
  ValueId x;  // as x
  ValueId g;  // [B, T, D] st
};
GateGrad gate_grad(Builder& b, ValueId dy, ValueId x, ValueId g, ValueId index);

}  // namespace wam
