// A sum of pad_zeros along one dim whose elements lie side by side and fill it becomes a concat: what
// the gradients of a tensor read in slices add up to. One pass over memory instead of two a slice.
// Exact but for the sign of zeros (-0 + 0 = 0).
#pragma once

#include "wam/graph/graph.h"

namespace wam {

bool fuse_padded_sums(Graph& graph);

}  // namespace wam
