// The UMT5 text encoder as a graph.
#pragma once

#include "wam/models/params.h"

namespace wam {

struct Umt5Config {
  int64_t vocab = 256384;
  int64_t dim = 4096;
  int64_t dim_attn = 4096;  // width of q, k, v
  int64_t dim_ffn = 10240;
  int64_t heads = 64;
  int64_t layers = 24;
  int64_t num_buckets = 32;    // of relative positions, both directions together
  int64_t max_distance = 128;  // from here on all distances share a bucket
};

// The XXL encoder that the published models use.
inline Umt5Config umt5_xxl() { return {}; }
// Throws ConfigError for sizes that are not positive or do not divide.
void check(const Umt5Config& config);

struct Umt5Output {
  ValueId hidden;  // [B, L, dim] ft, all positions
  ValueId prompt;  // the same, zero where mask is 0: what conditions the transformer
};
// ids i32 [B, L] in [0, vocab); mask st [B, L], 1 for tokens and 0 for padding (at least one 1 a
// row). Padded keys take no part in attention.
Umt5Output build_umt5(ParamUser& params, const Umt5Config& config, ValueId ids, ValueId mask);

// Bucket of the distance key minus query: half of the buckets for positive distances; in each half
// the first half is exact, the rest grows with the logarithm up to max_distance.
int32_t relative_bucket(int64_t distance, int64_t num_buckets, int64_t max_distance);

}  // namespace wam
