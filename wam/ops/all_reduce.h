// y = the sum over the ranks of a group, the same bits on each: any shape, added in the order of
// the ranks. f32, bf16 (added in f32) or f64. With one rank it is a copy.
#pragma once

#include "wam/ops/all_gather.h"

namespace wam {

// `wire`: kF32 (as they are) or kBF16 (terms and sum rounded, half the bytes).
ValueId all_reduce(Builder& b, ValueId x, const RankGroup& group, DType wire = DType::kF32);

}  // namespace wam
