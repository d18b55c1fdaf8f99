// gelu_tanh_grad(linear_dgrad(dy, W), pre) in one kernel: from the second half of a feed-forward
// layer back to the first half's `pre` [..., K].
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId linear_dgrad_gelu(Builder& b, ValueId dy, ValueId weight, ValueId pre, bool kn = false);

}  // namespace wam
