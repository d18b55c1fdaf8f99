// Puts rows into a buffer: y = buffer with y[b, offset + i] = rows[b, i]. buffer [B, L, W],
// rows [B, n, W] of the same type. Meant to be done in place of `buffer`: a key/value cache.
// Carries no gradient.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

ValueId write_rows(Builder& b, ValueId buffer, ValueId rows, int64_t offset);

}  // namespace wam
