// Rows of a table chosen by number. No gradient: the tables are frozen.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// ids i32 [...], each in [0, V); table [V, D] -> [..., D]. A constant `ids` is checked here, others
// when the CPU kernel runs.
ValueId embedding(Builder& b, ValueId ids, ValueId table);

}  // namespace wam
