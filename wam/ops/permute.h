// Dims in another order: dim i of the result is dim perm[i] of x. Copies. Any dtype.
#pragma once

#include <vector>

#include "wam/graph/builder.h"

namespace wam {

// A reshape, hence a view, where the elements keep their order; x itself for the identity.
ValueId permute(Builder& b, ValueId x, std::vector<int64_t> perm);

}  // namespace wam
