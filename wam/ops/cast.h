// The same numbers in another floating type, rounded to nearest even. Gradients are cast back.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x itself if it has the type already.
ValueId cast(Builder& b, ValueId x, DType dtype);

}  // namespace wam
