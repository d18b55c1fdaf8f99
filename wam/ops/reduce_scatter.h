// y = this rank's part of the sum over the ranks of a group: [ranks * n] -> [n], added in the order
// of the ranks. f32, bf16 (added in f32) or f64. With one rank it is a copy.
#pragma once

#include "wam/ops/all_gather.h"

namespace wam {

// `wire`: type of the terms on their way, kF32 (as they are) or kBF16 (rounded, half the bytes).
ValueId reduce_scatter(Builder& b, ValueId x, const RankGroup& group, DType wire = DType::kF32);

}  // namespace wam
