// y = a - b; b has a's shape or a suffix of it. Same dtype.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId sub(Builder& b, ValueId x, ValueId y);

}  // namespace wam
