// Flow-matching loss: scale * sum_{b,l} row_weight[b, index[l]] * sum_p mask * (pred - target)^2,
// a scalar in st. Means over rows and elements are part of `scale`.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

struct WeightedMse {
  ValueId pred;        // [B, L, P], any floating type
  ValueId target;      // [B, L, P], st or pred's type; no gradient
  ValueId row_weight;  // st [B, T]; no gradient
  ValueId index;       // i32 [L]
  ValueId mask;        // st [B, L, P], 0 or 1 (or any weight); invalid: all ones
};
ValueId weighted_mse(Builder& b, const WeightedMse& inputs, double scale);
// d loss / d pred, of pred's type, times the scalar `dloss` (st).
ValueId weighted_mse_grad(Builder& b, ValueId dloss, const WeightedMse& inputs, double scale);

}  // namespace wam
