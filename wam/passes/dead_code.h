// Removes nodes that no output, update or side effect needs. Exact.
#pragma once

#include "wam/graph/graph.h"

namespace wam {

bool remove_dead_code(Graph& graph);

}  // namespace wam
