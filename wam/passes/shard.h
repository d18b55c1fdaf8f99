// Divides flat buffers of states over the ranks of a group. Runs last, on a graph with both halves:
// recomputed nodes need their weights like any others.
//
// Weights: a rank keeps its part of every buffer; the whole is gathered into the arena before the
// first node that reads a tensor of it, and again for the backward half unless it is kept. Tensors
// are views of the gathered buffer. Gradients: the tensors of a buffer are packed into one
// transient buffer, and a rank keeps its part of the sum over the ranks.
//
// Weights: exact. Gradients: rounding tier, the order in which micro-batches are added is another.
#pragma once

#include <string>
#include <vector>

#include "wam/graph/graph.h"
#include "wam/ops/all_gather.h"

namespace wam {

// A flat buffer of the model. Its states are found by their region.
struct ShardedBuffer {
  std::string weights, gradients;  // names of the regions
  int64_t num_elements = 0;
  int block = -1;  // -1: needed throughout; gathered once and kept
};

struct ShardOptions {
  RankGroup group;
  std::vector<ShardedBuffer> buffers;
  bool weights = false;
  bool reshard_after_forward = true;  // false: what was gathered is kept for the backward half
  int64_t prefetch = 1;               // how many buffers ahead of its first reader a gather stands
  bool gradients = false;
  bool scatter = true;  // a rank keeps its part of the sum; false: the whole sum, as "flat_grad/<region>"
  DType wire = DType::kF32;  // of the terms of a gradient's sum on their way
  bool accumulate = false;   // add to the gradients' states instead of writing them
};

// Elements of one rank's part: all parts are equally long and aligned as tensors are (64 elements);
// the last are padded.
int64_t shard_elements(int64_t num_elements, int64_t ranks);

// States afterwards: "shard/<region>" and "grad_shard/<region>", one each a buffer, at the start of
// their regions. A graph that accumulates by itself still reads its gradient states of before; then
// `accumulate` must be false.
bool shard(Graph& graph, const ShardOptions& options);

}  // namespace wam
