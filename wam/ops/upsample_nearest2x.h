// Every pixel twice along height and width: x [B, T, H, W, C] -> [B, T, 2H, 2W, C]. Any dtype.
// Inference only.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId upsample_nearest2x(Builder& b, ValueId x);

}  // namespace wam
