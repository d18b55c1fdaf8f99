// y = a + b; b has a's shape or a suffix of it (a bias, a scalar). Same dtype.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId add(Builder& b, ValueId x, ValueId y);

}  // namespace wam
