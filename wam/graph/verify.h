// Checks a graph's invariants: order topological, producers and indices consistent, each op's rule
// gives the recorded types, updates well-formed and orderable. Throws InternalError naming the node.
#pragma once

#include "wam/graph/graph.h"

namespace wam {

void verify(const Graph& graph);

}  // namespace wam
