// Attention of one head, shared by attention and block_attention: softmax with a running maximum
// over tiles of keys, matrix products on tiles. All on the calling thread, in a fixed order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wam/tensor/attention_rects.h"

namespace wam::cpu {

// One head of one sample. Rows of q, k, v lie `stride` elements apart.
template <typename T>
struct AttentionHead {
  const T *q = nullptr, *k = nullptr, *v = nullptr;
  int64_t q_stride = 0, kv_stride = 0;
  int64_t d = 0;
  T scale = 1;
  const T* key_bias = nullptr;   // [keys] or null
  const T* pair_bias = nullptr;  // [queries, pair_stride] or null
  int64_t pair_stride = 0;
};

template <typename T>
struct AttentionHeadOut {
  T* out = nullptr;  // rows out_stride apart
  int64_t out_stride = 0;
  T* lse = nullptr;  // [queries]
};

template <typename T>
struct AttentionHeadGrad {
  const T *dout = nullptr, *out = nullptr;  // rows out_stride apart
  int64_t out_stride = 0;
  const T* lse = nullptr;
  T *dq = nullptr, *dk = nullptr,
    *dv = nullptr;  // with the strides of q, k, v; dk, dv are added to
};

constexpr int64_t kAttentionQueries = 64;  // queries of a tile

// out and lse of queries [q_begin, q_end), at most kAttentionQueries, over `keys`.
template <typename T>
void attend(const AttentionHead<T>& head, int64_t q_begin, int64_t q_end,
            std::span<const KeyRange> keys, const AttentionHeadOut<T>& out);
// dq of these queries, and what they add to dk and dv.
template <typename T>
void attend_grad(const AttentionHead<T>& head, int64_t q_begin, int64_t q_end,
                 std::span<const KeyRange> keys, const AttentionHeadGrad<T>& grad);

// A tile of queries of one rectangle: the unit of work of the forward.
struct QueryTile {
  size_t rect;
  int64_t begin, end;
};
std::vector<QueryTile> query_tiles(std::span<const AttentionRect> rects);

}  // namespace wam::cpu
