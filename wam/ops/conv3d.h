// Convolution over time, height and width (cross-correlation, as in PyTorch), channels last.
// Inference only.
#pragma once

#include <array>

#include "wam/graph/builder.h"

namespace wam {

struct Conv3d {
  std::array<int64_t, 3> stride = {1, 1, 1};
  // Zeros before and after: time, height, width. Each smaller than the kernel along its dim.
  std::array<int64_t, 6> pad = {0, 0, 0, 0, 0, 0};
};

// x [B, T, H, W, C]; weight [O, C, kt, kh, kw] as in checkpoints; bias [O]; all of one type.
// Gives [B, T', H', W', O] with T' = (T + pad - kt) / stride + 1 and so on. A residual of the
// result's shape is added before the result is rounded.
ValueId conv3d(Builder& b, ValueId x, ValueId weight, ValueId bias, const Conv3d& options,
               ValueId residual = {});

}  // namespace wam
