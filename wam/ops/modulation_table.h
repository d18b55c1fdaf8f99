// table[j,b,t] = e[b,t,j] + m[j]: time projection plus a block's own parameter, with the parts j
// (shift, scale, gate, ...) outermost, so that each is a view: slice(table, 0, j, j + 1).
// e [B, T, J*D] st; m [J, D], st or another floating type -> [J, B, T, D] st.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// Gradients of e and m are st.
ValueId modulation_table(Builder& b, ValueId e, ValueId m);

}  // namespace wam
