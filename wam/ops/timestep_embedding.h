// Sinusoids of timesteps: angle = t * 10000^(-i / half), i < half = dim / 2, cosines and sines in
// float64, rounded once. t st [...] -> st [..., dim]. Carries no gradient.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

enum class SinusoidOrder { kCosSin, kSinCos };  // video time embedding; action encoder

ValueId timestep_embedding(Builder& b, ValueId t, int64_t dim, SinusoidOrder order);

}  // namespace wam
