// Merges nodes with the same op, attributes and inputs, and constants with the same bytes. Clones
// made by the recompute pass, side effects and collectives are left alone. Exact.
#pragma once

#include "wam/graph/graph.h"

namespace wam {

bool merge_common_subexpressions(Graph& graph);

}  // namespace wam
