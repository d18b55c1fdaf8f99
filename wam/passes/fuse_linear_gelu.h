// linear -> gelu_tanh becomes linear_gelu, and in the backward half linear_dgrad -> gelu_tanh_grad
// becomes linear_dgrad_gelu: GELU and its gradient ride in the matrix product's epilogue. Exact on
// CPU; on GPU in bf16 it saves a rounding.
#pragma once

#include "wam/graph/graph.h"

namespace wam {

bool fuse_linear_gelu(Graph& graph);
bool fuse_linear_dgrad_gelu(Graph& graph);

}  // namespace wam
