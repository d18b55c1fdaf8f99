// y[b,l] = (1 - s) x[b,l] + s n[b,l] with s = sigma[b, index[l]]: noised latents and actions.
// x, n [B, L, P] of one type; sigma st [B, T]; index i32 [L]. Carries no gradient.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId lerp_rows(Builder& b, ValueId x, ValueId noise, ValueId sigma, ValueId index);

}  // namespace wam
