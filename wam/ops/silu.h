// y = x / (1 + exp(-x)), elementwise.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId silu(Builder& b, ValueId x);
// dy * silu'(x); all of one type.
ValueId silu_grad(Builder& b, ValueId dy, ValueId x);

}  // namespace wam
