// Elements [begin, end) along a dim that has only ones before it: a view, no kernel runs.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId slice_rows(Builder& b, ValueId x, int dim, int64_t begin, int64_t end);

}  // namespace wam
