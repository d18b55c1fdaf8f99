// Pixels of 2 x 2 blocks become channels in the order (c, column, row), row fastest, as the Wan2.2
// VAE has them. Inference only.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x [B, T, H, W, C], H and W even -> [B, T, H / 2, W / 2, 4 C] of floating type `dtype`.
ValueId fold_pixels(Builder& b, ValueId x, DType dtype);

}  // namespace wam
