// The inverse of take_rows: x [B, M, ...], index i32 [M] -> y [B, rows, ...], y[b, index[m]] = x[b, m],
// zero where no row is put. No row may be put twice. Any dtype.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// Throws GraphError if `index` is a constant with a repeated or out-of-range row.
ValueId put_rows(Builder& b, ValueId x, ValueId index, int64_t rows);

}  // namespace wam
