// Inside of the tensor-core attention: what its kernels are given, and their launchers.
#pragma once

#include <cuda.h>

#include "wam/kernels/cuda/attention.h"

namespace wam::cuda::attention {

struct Problem {
  CUtensorMap q, k, v, out, dout;  // [d, heads, rows, batch], boxes of 64 columns and 64 rows
  AttentionArgs args;
  const AttentionTile* tiles;
  const AttentionRange* ranges;
  int32_t* counters;
  int num_tiles, items, heads_together;
  bool wide;  // tiles of 192 rows
};
Problem make_problem(const AttentionArgs& args, const AttentionTiles& tiles);
int multiprocessors();

// out and lse over tiles of queries.
void launch_forward(const Problem& problem, cudaStream_t stream);
// dq and stats over tiles of queries.
void launch_dq(const Problem& problem, cudaStream_t stream);
// dk and dv over tiles of keys, once the stats are there.
void launch_dkv(const Problem& problem, cudaStream_t stream);

}  // namespace wam::cuda::attention
