// y = x / sqrt(mean(x^2) + eps) * w over the last dim; statistics in st.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x [..., D], weight [D], same type.
ValueId rms_norm(Builder& b, ValueId x, ValueId weight, double eps);

struct RmsNormGrad {
  ValueId x;       // as x
  ValueId weight;  // [D] st
};
RmsNormGrad rms_norm_grad(Builder& b, ValueId dy, ValueId x, ValueId weight, double eps);

}  // namespace wam
