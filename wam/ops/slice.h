// Elements [begin, end) along one dim. Any dtype.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// Chooses between the two ops: where all dims before `dim` are 1 the elements lie together, and
// `slice_rows`, a view, is enough; otherwise `slice` copies. x itself if the range is everything.
// A negative `dim` counts from the end.
ValueId slice(Builder& b, ValueId x, int dim, int64_t begin, int64_t end);

}  // namespace wam
