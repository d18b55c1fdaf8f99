// y = x/2 (1 + erf(x / sqrt(2))), elementwise: PyTorch's default gelu.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId gelu_erf(Builder& b, ValueId x);
// dy * gelu_erf'(x); all of one type.
ValueId gelu_erf_grad(Builder& b, ValueId dy, ValueId x);

}  // namespace wam
