// Relative position bias of attention: bias[h, q, k] = table[bucket[k - q + Lq - 1], h]. Inference
// only: the tables are frozen.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

// table [num_buckets, H]; bucket i32 [Lq + Lk - 1], from the most negative to the most positive
// distance key minus query. Gives [H, Lq, Lk] in the statistics type, as attention() takes it.
ValueId relative_bias(Builder& b, ValueId table, ValueId bucket, int64_t queries, int64_t keys);

}  // namespace wam
