// y = a flat buffer of `size` elements with input i (any shape) from element offsets[i] on and
// zeros between: how gradients of single tensors become one buffer for a collective. The planner
// lets the inputs be written in their places where it can; the kernel then only writes the zeros.
#pragma once

#include <span>

#include "wam/graph/builder.h"

namespace wam {

// Offsets ascend and the pieces do not overlap.
ValueId pack(Builder& b, std::span<const ValueId> pieces, std::span<const int64_t> offsets,
             int64_t size);

}  // namespace wam
