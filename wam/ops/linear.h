// y = x W^T + bias over the last dim. x [..., K], W [N, K] as PyTorch stores it, or [K, N] with
// `kn` (the action and state coders); bias [N]. Accumulates in float32.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// `bias` may be invalid.
ValueId linear(Builder& b, ValueId x, ValueId weight, ValueId bias, bool kn = false);
// dx [..., K] from dy [..., N].
ValueId linear_dgrad(Builder& b, ValueId dy, ValueId weight, bool kn = false);
struct LinearWgrad {
  ValueId weight;  // as W, f32 (f64 for f64)
  ValueId bias;    // [N], invalid unless asked for
};
LinearWgrad linear_wgrad(Builder& b, ValueId dy, ValueId x, bool has_bias, bool kn = false);

}  // namespace wam
