// 8-bit pixels to [-1, 1]: y = (x / 255 - 0.5) / 0.5 in float32, in this order.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x u8 of any shape; dtype f32 or f64.
ValueId pixels_to_float(Builder& b, ValueId x, DType dtype = DType::kF32);

}  // namespace wam
