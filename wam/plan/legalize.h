// Replaces every node the target has no kernel for by its decomposition, recursively.
#pragma once

#include <functional>
#include <string_view>

#include "wam/graph/graph.h"

namespace wam {

// Throws PlanError naming the op if one has neither kernel nor decomposition. True if it changed.
bool legalize(Graph& graph, const std::function<bool(std::string_view op)>& has_kernel);

}  // namespace wam
