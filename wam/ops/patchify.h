// Patches of 1 x 2 x 2: x [B, F, h, w, C] -> [B, F * (h/2) * (w/2), 4 C], tokens in (frame, row,
// column) order. An odd last row or column is dropped.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// Order of the 4 C elements of a patch: (channel, row, column), as the patch embedding's weight
// [D, C, 1, 2, 2] has them, or (row, column, channel), as the head puts them out.
enum class PatchOrder { kChannelFirst, kChannelLast };

// The result has floating type `dtype`.
ValueId patchify(Builder& b, ValueId x, PatchOrder order, DType dtype);

}  // namespace wam
