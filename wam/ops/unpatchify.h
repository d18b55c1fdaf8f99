// The inverse of patchify: x [B, F * (h/2) * (w/2), 4 C] -> [B, F, h, w, C]; an odd last row or column
// is zero.
#pragma once

#include "wam/graph/builder.h"
#include "wam/ops/patchify.h"

namespace wam {

struct FrameSize {
  int64_t frames, height, width;
};
// The result has floating type `dtype`.
ValueId unpatchify(Builder& b, ValueId x, const FrameSize& size, PatchOrder order, DType dtype);

}  // namespace wam
