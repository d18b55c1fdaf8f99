// Replaces every op that has a decomposition by plainer ones, so that the graph runs, and is
// differentiated, without any fused op: the slow twin of all fusions.
#pragma once

#include "wam/graph/graph.h"

namespace wam {

bool decompose_fused(Graph& graph);

}  // namespace wam
