// Self-attention over rectangles of (query range, key ranges): softmax(scale q k^T) v per head and
// rectangle. qkv [B, L, 3 D] holds queries, keys, values side by side; D = heads * d.
// Outputs o [B, L, D] and lse [B, H, L] (statistics type): the natural logarithm of the sum of the
// exponentials of the scaled scores. No gradient may flow into lse.
// Gradient op block_attention_grad: do, o, lse, qkv -> dqkv.
#pragma once

#include <span>

#include "wam/graph/builder.h"
#include "wam/tensor/attention_rects.h"

namespace wam {

struct AttentionResult {
  ValueId out;  // [B, L, D]
  ValueId lse;  // [B, H, L]
};

// scale is usually 1 / sqrt(d). `rects` as check_rects() demands.
AttentionResult block_attention(Builder& b, ValueId qkv, int64_t heads, double scale,
                                std::span<const AttentionRect> rects);

}  // namespace wam
