// Layer normalisation over the last dim: n = (x - mean) / sqrt(var + eps), y = n or n * w + b.
// The variance is that of the D elements (divided by D), taken around the mean in a second pass.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

struct LayerNorm {
  ValueId y;      // as x
  ValueId stats;  // [rows, 2] st: mean, 1 / sqrt(var + eps); carries no gradient
};
// x [..., D]; weight and bias [D] of x's type, both or neither.
LayerNorm layer_norm(Builder& b, ValueId x, double eps, ValueId weight = {}, ValueId bias = {});

struct LayerNormGrad {
  ValueId x;             // as x
  ValueId weight, bias;  // [D] st; invalid without a weight
};
LayerNormGrad layer_norm_grad(Builder& b, ValueId dy, ValueId x, ValueId stats, ValueId weight = {});

}  // namespace wam
