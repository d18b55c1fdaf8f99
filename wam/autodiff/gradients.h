// The backward half of a graph.
#pragma once

#include <span>
#include <vector>

#include "wam/graph/builder.h"

namespace wam {

// Appends the nodes that compute d loss / d v for each v in `wrt` and returns them in that order;
// invalid where the loss does not depend on v. `loss` is a scalar; its own gradient is the constant
// `seed` (1 / number of micro-batches under accumulation). Nodes carry the block and label of the
// forward node they belong to, and Phase::kBackward. Throws GraphError where an op on the path has
// neither a backward nor a decomposition.
std::vector<ValueId> gradients(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
                               double seed = 1.0);

}  // namespace wam
