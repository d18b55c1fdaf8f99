#include "wam/kernels/cpu/attention_core.h"

#include <cmath>
#include <limits>

#include "wam/kernels/cpu/gemm.h"
#include "wam/kernels/cpu/math.h"
#include "wam/kernels/cpu/support.h"

namespace wam::cpu {
namespace {

constexpr int64_t kKeys = 256;  // keys of a tile
constexpr int64_t kQueries = kAttentionQueries;

// Scores, probabilities or their gradients of one tile; rows kKeys apart.
template <typename T>
struct Tile {
  alignas(64) T values[kQueries * kKeys];
  T* row(int64_t i) { return values + i * kKeys; }
};

template <typename T>
T dot(const T* x, const T* y, int64_t n) {
  return ordered_sum<T>(n, [=](int64_t i) { return x[i] * y[i]; });
}

template <typename T>
T max_of(const T* x, int64_t n, T start) {
  constexpr int kLanes = 16;
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, start);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = x[i + lane] > lanes[lane] ? x[i + lane] : lanes[lane];
    }
  }
  for (; i < n; ++i) lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  for (int lane = 1; lane < kLanes; ++lane) lanes[0] = std::max(lanes[0], lanes[lane]);
  return lanes[0];
}

// A single key: the softmax is 1.
bool single_key(std::span<const KeyRange> keys) { return keys.size() == 1 && keys[0].size() == 1; }

// scale q k^T + biases for queries [q_begin, q_begin + rows) and keys [k_begin, k_begin + cols).
template <typename T>
void scores(const AttentionHead<T>& head, int64_t q_begin, int64_t rows, int64_t k_begin,
            int64_t cols, Tile<T>& tile) {
  gemm_serial({rows, cols, head.d, false, true}, head.scale, head.q + q_begin * head.q_stride,
              head.q_stride, head.k + k_begin * head.kv_stride, head.kv_stride, T{0}, tile.values,
              kKeys);
  for (int64_t i = 0; i < rows; ++i) {
    T* row = tile.row(i);
    if (head.key_bias != nullptr) {
      for (int64_t j = 0; j < cols; ++j) row[j] += head.key_bias[k_begin + j];
    }
    if (head.pair_bias != nullptr) {
      const T* bias = head.pair_bias + (q_begin + i) * head.pair_stride + k_begin;
      for (int64_t j = 0; j < cols; ++j) row[j] += bias[j];
    }
  }
}

// row[j] = exp(row[j] - shift), 0 everywhere if shift is -inf (no key seen yet is finite).
template <typename T>
void exponentials(T* row, int64_t n, T shift) {
  const T finite = shift == -std::numeric_limits<T>::infinity() ? T{0} : shift;
  for (int64_t j = 0; j < n; ++j) row[j] = math::exp(row[j] - finite);
}

template <typename T>
void attend_single_key(const AttentionHead<T>& head, int64_t q_begin, int64_t q_end, int64_t key,
                       const AttentionHeadOut<T>& out) {
  for (int64_t q = q_begin; q < q_end; ++q) {
    std::copy_n(head.v + key * head.kv_stride, head.d, out.out + q * out.out_stride);
    T score = head.scale * dot(head.q + q * head.q_stride, head.k + key * head.kv_stride, head.d);
    if (head.key_bias != nullptr) score += head.key_bias[key];
    if (head.pair_bias != nullptr) score += head.pair_bias[q * head.pair_stride + key];
    out.lse[q] = score;
  }
}

// The running maximum and sum of each query of a tile.
template <typename T>
struct RunningSoftmax {
  T max[kQueries], sum[kQueries];

  // Turns the tile's row into exp(score - new maximum) and rescales the output row so far.
  void update(int64_t i, T* row, int64_t cols, T* out_row, int64_t d) {
    const T new_max = max_of(row, cols, max[i]);
    exponentials(row, cols, new_max);
    const T tile_sum = ordered_sum<T>(cols, [row](int64_t j) { return row[j]; });
    if (new_max != max[i]) {
      const T factor = math::exp(max[i] - new_max);  // 0 on the first tile
      sum[i] *= factor;
      if (out_row != nullptr) {
        for (int64_t c = 0; c < d; ++c) out_row[c] *= factor;
      }
    }
    sum[i] += tile_sum;
    max[i] = new_max;
  }
};

}  // namespace

template <typename T>
void attend(const AttentionHead<T>& head, int64_t q_begin, int64_t q_end,
            std::span<const KeyRange> keys, const AttentionHeadOut<T>& out) {
  if (single_key(keys)) return attend_single_key(head, q_begin, q_end, keys[0].begin, out);
  const int64_t rows = q_end - q_begin;
  Tile<T> tile;
  RunningSoftmax<T> softmax;
  std::fill_n(softmax.max, rows, -std::numeric_limits<T>::infinity());
  std::fill_n(softmax.sum, rows, T{0});
  T* const first_row = out.out + q_begin * out.out_stride;
  bool first = true;
  for (const KeyRange& range : keys) {
    for (int64_t key = range.begin; key < range.end; key += kKeys, first = false) {
      const int64_t cols = std::min(kKeys, range.end - key);
      scores(head, q_begin, rows, key, cols, tile);
      for (int64_t i = 0; i < rows; ++i) {
        T* so_far = first ? nullptr : first_row + i * out.out_stride;
        softmax.update(i, tile.row(i), cols, so_far, head.d);
      }
      gemm_serial({rows, head.d, cols, false, false}, T{1}, tile.values, kKeys,
                  head.v + key * head.kv_stride, head.kv_stride, first ? T{0} : T{1}, first_row,
                  out.out_stride);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const T inverse = softmax.sum[i] > 0 ? T{1} / softmax.sum[i] : T{0};
    T* row = first_row + i * out.out_stride;
    for (int64_t c = 0; c < head.d; ++c) row[c] *= inverse;
    out.lse[q_begin + i] = softmax.max[i] + std::log(softmax.sum[i]);
  }
}

template <typename T>
void attend_grad(const AttentionHead<T>& head, int64_t q_begin, int64_t q_end,
                 std::span<const KeyRange> keys, const AttentionHeadGrad<T>& grad) {
  const int64_t rows = q_end - q_begin, d = head.d;
  const T* const dout = grad.dout + q_begin * grad.out_stride;
  T* const dq = grad.dq + q_begin * head.q_stride;
  if (single_key(keys)) {
    T* dv = grad.dv + keys[0].begin * head.kv_stride;
    for (int64_t i = 0; i < rows; ++i) {
      std::fill_n(dq + i * head.q_stride, d, T{0});
      for (int64_t c = 0; c < d; ++c) dv[c] += dout[i * grad.out_stride + c];
    }
    return;
  }
  T delta[kQueries];
  for (int64_t i = 0; i < rows; ++i) {
    delta[i] = dot(dout + i * grad.out_stride, grad.out + (q_begin + i) * grad.out_stride, d);
  }
  Tile<T> p, dp;
  bool first = true;
  for (const KeyRange& range : keys) {
    for (int64_t key = range.begin; key < range.end; key += kKeys, first = false) {
      const int64_t cols = std::min(kKeys, range.end - key), offset = key * head.kv_stride;
      scores(head, q_begin, rows, key, cols, p);
      gemm_serial({rows, cols, d, false, true}, T{1}, dout, grad.out_stride, head.v + offset,
                  head.kv_stride, T{0}, dp.values, kKeys);
      for (int64_t i = 0; i < rows; ++i) {
        T *p_row = p.row(i), *dp_row = dp.row(i);
        exponentials(p_row, cols, grad.lse[q_begin + i]);
        for (int64_t j = 0; j < cols; ++j) {
          dp_row[j] = p_row[j] * (dp_row[j] - delta[i]) * head.scale;
        }
      }
      gemm_serial({cols, d, rows, true, false}, T{1}, p.values, kKeys, dout, grad.out_stride, T{1},
                  grad.dv + offset, head.kv_stride);
      gemm_serial({rows, d, cols, false, false}, T{1}, dp.values, kKeys, head.k + offset,
                  head.kv_stride, first ? T{0} : T{1}, dq, head.q_stride);
      gemm_serial({cols, d, rows, true, false}, T{1}, dp.values, kKeys,
                  head.q + q_begin * head.q_stride, head.q_stride, T{1}, grad.dk + offset,
                  head.kv_stride);
    }
  }
}

std::vector<QueryTile> query_tiles(std::span<const AttentionRect> rects) {
  std::vector<QueryTile> tiles;
  for (size_t i = 0; i < rects.size(); ++i) {
    for (int64_t q = rects[i].q_begin; q < rects[i].q_end; q += kAttentionQueries) {
      tiles.push_back({i, q, std::min(q + kAttentionQueries, rects[i].q_end)});
    }
  }
  return tiles;
}

template void attend(const AttentionHead<float>&, int64_t, int64_t, std::span<const KeyRange>,
                     const AttentionHeadOut<float>&);
template void attend(const AttentionHead<double>&, int64_t, int64_t, std::span<const KeyRange>,
                     const AttentionHeadOut<double>&);
template void attend_grad(const AttentionHead<float>&, int64_t, int64_t, std::span<const KeyRange>,
                          const AttentionHeadGrad<float>&);
template void attend_grad(const AttentionHead<double>&, int64_t, int64_t, std::span<const KeyRange>,
                          const AttentionHeadGrad<double>&);

}  // namespace wam::cpu
