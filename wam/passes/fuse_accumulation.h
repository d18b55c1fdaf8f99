// add(gradient state, linear_wgrad(...)) becomes linear_wgrad with accumulate: the product adds to
// the sums in place. Rounding tier: on CPU the sum of the product's terms starts from the old value.
#pragma once

#include "wam/graph/graph.h"

namespace wam {

bool fuse_accumulation(Graph& graph);

}  // namespace wam
