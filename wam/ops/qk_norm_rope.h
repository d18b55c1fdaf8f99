// Normalises and rotates the query and key parts of a fused projection, and copies the rest.
// x [B, L, parts * D]; for each of the first `normed` parts, normed = weights.size():
//   RMSNorm over the whole D, times weights[part] [D], then, with a table, rope over `heads` heads.
// Self-attention: parts 3, two weights, table. Cross-attention queries: parts 1, one weight; keys
// and values: parts 2, one weight. May be written in place of x.
// Gradient op: inputs dy, x, weights..., (table); outputs dx, dweights... [D] in the statistics
// type. With attribute `two_grads` a second dy follows the first, to be added to it; with `bias_grad`
// the last output is the sum of dx over rows [parts * D] in the statistics type: the gradient of the
// bias of the projection.
#pragma once

#include <span>

#include "wam/graph/builder.h"

namespace wam {

struct QkNormRope {
  int64_t parts = 3;
  int64_t heads = 1;
  double eps = 1e-6;
};

// `table` [L, d/2, 2] as in rope(), or invalid: no rotation.
ValueId qk_norm_rope(Builder& b, ValueId x, std::span<const ValueId> weights, ValueId table,
                     const QkNormRope& options);

}  // namespace wam
