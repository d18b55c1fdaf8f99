// y = factor * x + offset, elementwise.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId scale(Builder& b, ValueId x, double factor, double offset = 0);

}  // namespace wam
