// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), elementwise: PyTorch's gelu(approximate="tanh").
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId gelu_tanh(Builder& b, ValueId x);
// dy * gelu_tanh'(x); all of one type.
ValueId gelu_tanh_grad(Builder& b, ValueId dy, ValueId x);

}  // namespace wam
