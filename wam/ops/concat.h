// Tensors put one after another along one dim; other sizes equal. Any dtype.
#pragma once

#include <initializer_list>
#include <span>

#include "wam/graph/builder.h"

namespace wam {

// The only one itself if there is one. A negative `dim` counts from the end.
ValueId concat(Builder& b, std::span<const ValueId> parts, int dim);
inline ValueId concat(Builder& b, std::initializer_list<ValueId> parts, int dim) {
  return concat(b, std::span<const ValueId>(parts.begin(), parts.size()), dim);
}

}  // namespace wam
