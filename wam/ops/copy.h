// y = x, bytes copied. The planner inserts it where a state cannot be updated in place.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId copy(Builder& b, ValueId x);

}  // namespace wam
