// Attention over tiles of queries (forward, dq) and tiles of keys (dk, dv). A tile is a run of at
// most kAttentionTile rows (forward: kWideAttentionTile) that all attend, or are attended to,
// alike; what they see is a list of ranges. Two sets of kernels: Hopper's (attention_hopper.h:
// bf16, head width up to 128 in steps of 8) and plain ones for everything else.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wam/tensor/attention_rects.h"
#include "wam/tensor/dtype.h"

namespace wam::cuda {

constexpr int64_t kAttentionTile = 128, kWideAttentionTile = 192;
constexpr int64_t kAttentionStep = 64;  // rows of the other side that are taken at once

struct AttentionTile {
  int32_t begin, count;         // rows of the tile
  int32_t first_range, ranges;  // what they see
  int32_t steps;                // of kAttentionStep rows, each range in whole steps, at least one
  int32_t part;                 // of_keys: which part of the queries these ranges are
};
struct AttentionRange {
  int32_t begin, count;
};

// The tiles of one problem in device memory, heaviest first. Of launches over the same tiles at
// most one may run at a time: they share the counters.
class AttentionTiles {
 public:
  // Tiles of queries of each rectangle, for gradients.
  static std::shared_ptr<AttentionTiles> of_queries(std::span<const AttentionRect> rects);
  // The same for forward; `plain_scores`: no biases and a positive scale. Wide if that is faster.
  static std::shared_ptr<AttentionTiles> for_forward(std::span<const AttentionRect> rects,
                                                     DType dtype, int64_t d, bool plain_scores);
  // Tiles of keys that the same rectangles read; keys nobody reads have an empty range.
  // With parts > 1 each tile comes once for each of so many parts of the queries, for which there
  // must be one rectangle.
  static std::shared_ptr<AttentionTiles> of_keys(std::span<const AttentionRect> rects, int64_t keys,
                                                 int64_t parts = 1);
  ~AttentionTiles();
  AttentionTiles(const AttentionTiles&) = delete;
  AttentionTiles& operator=(const AttentionTiles&) = delete;

  const AttentionTile* tiles() const { return tiles_; }
  const AttentionRange* ranges() const { return ranges_; }
  int count() const { return count_; }
  bool wide() const { return wide_; }
  // Two zeros, which kernels that share out work leave as zeros.
  int32_t* counters() const { return counters_; }

 private:
  AttentionTiles(std::vector<AttentionTile> tiles, const std::vector<AttentionRange>& ranges);
  AttentionTile* tiles_ = nullptr;
  AttentionRange* ranges_ = nullptr;
  int32_t* counters_ = nullptr;
  int count_ = 0;
  bool wide_ = false;
};

// Strides in elements. Heads lie d elements apart within a row.
struct AttentionArgs {
  DType dtype = DType::kF32;
  int64_t batch = 0, heads = 0, d = 0, queries = 0, keys = 0;
  float scale = 1;
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  int64_t q_row = 0, q_batch = 0, kv_row = 0, kv_batch = 0;
  const float* key_bias = nullptr;  // [keys], key_bias_batch apart
  int64_t key_bias_batch = 0;
  const float* pair_bias = nullptr;  // [heads, queries, keys]
  void* out = nullptr;               // [batch, queries, heads * d]; also o in the gradient
  float* lse = nullptr;              // [batch, heads, queries]
  // Gradient: dq, dk, dv with the strides of q, k, v.
  const void* dout = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  // Workspace [2, batch, heads, queries]: lse * log2(e), sum over channels of dout * out.
  float* stats = nullptr;
  // Workspace [parts, batch, keys, 2 * heads * d], needed if the key tiles have parts > 1; dk and
  // dv must then lie in rows of 2 * heads * d.
  int64_t parts = 1;
  float* partial = nullptr;
};

bool has_hopper_attention(DType dtype, int64_t d);
void launch_attention(const AttentionArgs& args, const AttentionTiles& queries,
                      cudaStream_t stream);
void launch_attention_grad(const AttentionArgs& args, const AttentionTiles& queries,
                           const AttentionTiles& keys, cudaStream_t stream);

// The two sets, for tests and benchmarks; the launchers above choose.
void launch_plain_attention(const AttentionArgs& args, const AttentionTiles& queries,
                            cudaStream_t stream);
void launch_plain_attention_grad(const AttentionArgs& args, const AttentionTiles& queries,
                                 const AttentionTiles& keys, cudaStream_t stream);
void launch_hopper_attention(const AttentionArgs& args, const AttentionTiles& queries,
                             cudaStream_t stream);
void launch_hopper_attention_grad(const AttentionArgs& args, const AttentionTiles& queries,
                                  const AttentionTiles& keys, cudaStream_t stream);
}  // namespace wam::cuda
