// min(1, max_norm / (sqrt(norm_squared) + 1e-6)): what gradients are multiplied by, as
// torch.nn.utils.clip_grad_norm_. NaN stays NaN. A scalar of norm_squared's type.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// max_norm > 0.
ValueId clip_factor(Builder& b, ValueId norm_squared, double max_norm);

}  // namespace wam
