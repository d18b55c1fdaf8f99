// The same elements in other sizes; a view, no kernel runs.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x itself if it has the shape already.
ValueId reshape(Builder& b, ValueId x, const Shape& shape);

}  // namespace wam
