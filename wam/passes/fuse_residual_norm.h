// The seams between sublayers become one op: x + o or x + gate(o), then layer norm with its
// modulation or affine part -> residual_norm. Also layer norm + modulation alone, and gate + add
// alone. Exact on CPU; on GPU in bf16 it saves roundings.
#pragma once

#include "wam/graph/graph.h"

namespace wam {

bool fuse_residual_norm(Graph& graph);

}  // namespace wam
