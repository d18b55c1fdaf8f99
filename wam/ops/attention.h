// Attention of queries q [B, Lq, D] over keys and values kv [B, Lk, 2 D] (k, then v), D = heads *
// d: softmax(scale q k^T + biases) v per head. Biases are in the statistics type; no gradient flows
// to them. A bias may be -inf, as long as each query keeps one finite key. Outputs o [B, Lq, D] and
// lse [B, H, Lq] as in block_attention(). Gradient op attention_grad: do, o, lse, q, kv, biases...
// -> dq, dkv.
#pragma once

#include "wam/graph/builder.h"
#include "wam/ops/block_attention.h"

namespace wam {

struct Attention {
  int64_t heads = 1;
  double scale = 1;
  ValueId key_bias = {};   // [Lk] or [B, Lk]; may be invalid
  ValueId pair_bias = {};  // [H, Lq, Lk]; may be invalid
};

AttentionResult attention(Builder& b, ValueId q, ValueId kv, const Attention& options);

}  // namespace wam
