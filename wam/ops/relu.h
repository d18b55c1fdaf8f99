// y = max(x, 0), elementwise; NaN stays NaN.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId relu(Builder& b, ValueId x);
// dy where x > 0, else 0; all of one type.
ValueId relu_grad(Builder& b, ValueId dy, ValueId x);

}  // namespace wam
