// What AdamW needs from one step to the next, decided on the device: the schedule's numbers with the
// clip factor put in, and the skip flag raised when the gradient norm is not finite.
//   schedule f32 [8] as AdamwScalar, norm_squared f32 or f64 scalar -> f32 [8]
// clip_factor = min(1, max_norm / (norm + 1e-6)), 1 if max_norm is 0 (no clipping), as
// torch.nn.utils.clip_grad_norm_.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId adamw_scalars(Builder& b, ValueId schedule, ValueId norm_squared, double max_norm);

}  // namespace wam
