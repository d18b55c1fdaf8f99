// The Wan VAE's normalisation over channels: y = x * (sqrt(C) / max(||x||_2, 1e-12)) * gamma,
// followed by SiLU if asked for. Inference only.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// x [..., C], gamma [C] of x's type.
ValueId channel_norm(Builder& b, ValueId x, ValueId gamma, bool silu);

}  // namespace wam
