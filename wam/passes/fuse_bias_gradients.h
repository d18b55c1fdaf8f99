// Bias gradients ride in the kernel that makes what they sum: linear_wgrad of an output of
// residual_norm_grad or qk_norm_rope_grad leaves the sum over rows to that op, which has the rows at
// hand. And a sum of two gradients that only qk_norm_rope_grad reads is left to it as well. Saves one
// pass over memory each, and three. The same mathematics; sums over rows in another order.
#pragma once

#include "wam/graph/graph.h"

namespace wam {

bool fuse_bias_gradients(Graph& graph);
bool fuse_gradient_sums(Graph& graph);

}  // namespace wam
