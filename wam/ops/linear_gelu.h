// h = gelu_tanh(pre), pre = x W^T + bias: the first half of a feed-forward layer in one kernel.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

struct LinearGelu {
  ValueId h;    // [..., N]
  ValueId pre;  // [..., N], for the gradient
};
// Operands as linear(); `bias` may be invalid.
LinearGelu linear_gelu(Builder& b, ValueId x, ValueId weight, ValueId bias, bool kn = false);

}  // namespace wam
