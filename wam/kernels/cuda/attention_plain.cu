// Attention without tensor cores, for f32 and for head widths the Hopper kernels do not take. One
// warp a query (forward, dq) or a key (dk, dv); a lane takes a key of 32 for scores and a channel
// of 32 for sums. All in f32; every sum in one fixed order.
#include "wam/kernels/cuda/attention.h"
#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kWarps = 4;

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, step));
  return x;
}

// What a warp works on.
struct Item {
  int64_t batch, head, row;
  AttentionTile tile;
};
__device__ bool find_item(const AttentionArgs& a, const AttentionTile* tiles, Item& item) {
  const int64_t blocks_per_tile = kWideAttentionTile / kWarps;
  const int64_t bh = blockIdx.y;
  item.tile = tiles[blockIdx.x / blocks_per_tile];
  const int64_t in_tile = blockIdx.x % blocks_per_tile * kWarps + threadIdx.x / kWarp;
  item.row = item.tile.begin + in_tile;
  item.batch = bh / a.heads;
  item.head = bh % a.heads;
  return in_tile < item.tile.count;
}

template <typename T>
struct Head {
  const T *q, *k, *v;
  const float *key_bias, *pair_bias;
};
template <typename T>
__device__ Head<T> head_of(const AttentionArgs& a, const Item& item) {
  const int64_t q = item.batch * a.q_batch + item.head * a.d;
  const int64_t kv = item.batch * a.kv_batch + item.head * a.d;
  return {static_cast<const T*>(a.q) + q, static_cast<const T*>(a.k) + kv,
          static_cast<const T*>(a.v) + kv,
          a.key_bias == nullptr ? nullptr : a.key_bias + item.batch * a.key_bias_batch,
          a.pair_bias == nullptr ? nullptr : a.pair_bias + item.head * a.queries * a.keys};
}

template <typename T>
__device__ float dot(const float* shared, const T* row, int64_t d) {
  float sum = 0;
  for (int64_t c = 0; c < d; ++c) sum += shared[c] * wide(row[c]);
  return sum;
}

template <typename T>
__device__ float score(const AttentionArgs& a, const Head<T>& head, const float* q, int64_t query,
                       int64_t key) {
  float s = a.scale * dot(q, head.k + key * a.kv_row, a.d);
  if (head.key_bias != nullptr) s += head.key_bias[key];
  if (head.pair_bias != nullptr) s += head.pair_bias[query * a.keys + key];
  return s;
}

template <typename T>
__device__ void load_row(const T* row, int64_t d, float* shared) {
  for (int64_t c = threadIdx.x % kWarp; c < d; c += kWarp) shared[c] = wide(row[c]);
  __syncwarp();
}

template <typename T>
__global__ void __launch_bounds__(kWarps* kWarp)
    attention_kernel(AttentionArgs a, const AttentionTile* tiles, const AttentionRange* ranges) {
  extern __shared__ float shared[];
  Item item;
  if (!find_item(a, tiles, item)) return;
  const Head<T> head = head_of<T>(a, item);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float *q = shared + threadIdx.x / kWarp * 2 * a.d, *sum = q + a.d;
  load_row(head.q + item.row * a.q_row, a.d, q);
  for (int64_t c = lane; c < a.d; c += kWarp) sum[c] = 0;
  float most = -INFINITY, total = 0;
  for (int r = 0; r < item.tile.ranges; ++r) {
    const AttentionRange range = ranges[item.tile.first_range + r];
    for (int first = 0; first < range.count; first += kWarp) {
      const int count = min(kWarp, range.count - first);
      const int64_t key = range.begin + first + lane;
      const float s = lane < count ? score(a, head, q, item.row, key) : -INFINITY;
      const float new_most = fmaxf(most, warp_max(s));
      const float base = new_most == -INFINITY ? 0.0f : new_most;
      const float p = expf(s - base), factor = expf(most - base);
      total = total * factor + warp_sum(p);
      most = new_most;
      for (int64_t c = lane; c - lane < a.d; c += kWarp) {
        float part = 0;
        for (int j = 0; j < count; ++j) {
          const float pj = __shfl_sync(kAllLanes, p, j);
          if (c < a.d) part += pj * wide(head.v[(range.begin + first + j) * a.kv_row + c]);
        }
        if (c < a.d) sum[c] = sum[c] * factor + part;
      }
    }
  }
  T* out = static_cast<T*>(a.out) + (item.batch * a.queries + item.row) * a.heads * a.d +
           item.head * a.d;
  for (int64_t c = lane; c < a.d; c += kWarp) out[c] = narrow<T>(sum[c] / total);
  if (lane == 0)
    a.lse[(item.batch * a.heads + item.head) * a.queries + item.row] = most + logf(total);
}

template <typename T>
__global__ void __launch_bounds__(kWarps* kWarp)
    attention_dq_kernel(AttentionArgs a, const AttentionTile* tiles, const AttentionRange* ranges) {
  extern __shared__ float shared[];
  Item item;
  if (!find_item(a, tiles, item)) return;
  const Head<T> head = head_of<T>(a, item);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float *q = shared + threadIdx.x / kWarp * 3 * a.d, *dout = q + a.d, *sum = dout + a.d;
  load_row(head.q + item.row * a.q_row, a.d, q);
  const int64_t out_row = (item.batch * a.queries + item.row) * a.heads * a.d + item.head * a.d;
  load_row(static_cast<const T*>(a.dout) + out_row, a.d, dout);
  for (int64_t c = lane; c < a.d; c += kWarp) sum[c] = 0;
  const int64_t stat = (item.batch * a.heads + item.head) * a.queries + item.row;
  const float lse = a.lse[stat], delta = a.stats[a.batch * a.heads * a.queries + stat];
  for (int r = 0; r < item.tile.ranges; ++r) {
    const AttentionRange range = ranges[item.tile.first_range + r];
    for (int first = 0; first < range.count; first += kWarp) {
      const int count = min(kWarp, range.count - first);
      const int64_t key = range.begin + first + lane;
      float ds = 0;
      if (lane < count) {
        const float p = expf(score(a, head, q, item.row, key) - lse);
        ds = p * (dot(dout, head.v + key * a.kv_row, a.d) - delta);
      }
      for (int64_t c = lane; c - lane < a.d; c += kWarp) {
        float part = 0;
        for (int j = 0; j < count; ++j) {
          const float dsj = __shfl_sync(kAllLanes, ds, j);
          if (c < a.d) part += dsj * wide(head.k[(range.begin + first + j) * a.kv_row + c]);
        }
        if (c < a.d) sum[c] += part;
      }
    }
  }
  T* dq = static_cast<T*>(a.dq) + item.batch * a.q_batch + item.row * a.q_row + item.head * a.d;
  for (int64_t c = lane; c < a.d; c += kWarp) dq[c] = narrow<T>(a.scale * sum[c]);
}

template <typename T>
__global__ void __launch_bounds__(kWarps* kWarp)
    attention_dkv_kernel(AttentionArgs a, const AttentionTile* tiles,
                         const AttentionRange* ranges) {
  extern __shared__ float shared[];
  Item item;
  if (!find_item(a, tiles, item)) return;
  const Head<T> head = head_of<T>(a, item);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float *k = shared + threadIdx.x / kWarp * 4 * a.d, *v = k + a.d, *dk = v + a.d, *dv = dk + a.d;
  load_row(head.k + item.row * a.kv_row, a.d, k);
  load_row(head.v + item.row * a.kv_row, a.d, v);
  for (int64_t c = lane; c < a.d; c += kWarp) dk[c] = dv[c] = 0;
  const T* dout =
      static_cast<const T*>(a.dout) + item.batch * a.queries * a.heads * a.d + item.head * a.d;
  const int64_t stat = (item.batch * a.heads + item.head) * a.queries;
  const float* delta = a.stats + a.batch * a.heads * a.queries + stat;
  for (int r = 0; r < item.tile.ranges; ++r) {
    const AttentionRange range = ranges[item.tile.first_range + r];
    for (int first = 0; first < range.count; first += kWarp) {
      const int count = min(kWarp, range.count - first);
      const int64_t query = range.begin + first + lane;
      float p = 0, ds = 0;
      if (lane < count) {
        float s = a.scale * dot(k, head.q + query * a.q_row, a.d);
        if (head.key_bias != nullptr) s += head.key_bias[item.row];
        if (head.pair_bias != nullptr) s += head.pair_bias[query * a.keys + item.row];
        p = expf(s - a.lse[stat + query]);
        ds = p * (dot(v, dout + query * a.heads * a.d, a.d) - delta[query]);
      }
      for (int64_t c = lane; c - lane < a.d; c += kWarp) {
        float part_k = 0, part_v = 0;
        for (int j = 0; j < count; ++j) {
          const float pj = __shfl_sync(kAllLanes, p, j), dsj = __shfl_sync(kAllLanes, ds, j);
          if (c >= a.d) continue;
          const int64_t row = range.begin + first + j;
          part_v += pj * wide(dout[row * a.heads * a.d + c]);
          part_k += dsj * wide(head.q[row * a.q_row + c]);
        }
        if (c < a.d) {
          dv[c] += part_v;
          dk[c] += part_k;
        }
      }
    }
  }
  const int64_t at = item.batch * a.kv_batch + item.row * a.kv_row + item.head * a.d;
  for (int64_t c = lane; c < a.d; c += kWarp) {
    static_cast<T*>(a.dk)[at + c] = narrow<T>(a.scale * dk[c]);
    static_cast<T*>(a.dv)[at + c] = narrow<T>(dv[c]);
  }
}

template <typename T>
__global__ void __launch_bounds__(256) attention_stats_kernel(AttentionArgs a) {
  const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (i >= a.batch * a.queries * a.heads) return;
  float sum = 0;
  for (int64_t c = lane; c < a.d; c += kWarp) {
    sum += wide(static_cast<const T*>(a.dout)[i * a.d + c]) *
           wide(static_cast<const T*>(a.out)[i * a.d + c]);
  }
  sum = warp_sum(sum);
  if (lane != 0) return;
  const int64_t head = i % a.heads, query = i / a.heads % a.queries, b = i / a.heads / a.queries;
  const int64_t at = (b * a.heads + head) * a.queries + query;
  a.stats[at] = a.lse[at] * 1.4426950408889634f;
  a.stats[a.batch * a.heads * a.queries + at] = sum;
}

template <typename Kernel>
void launch(Kernel kernel, const AttentionArgs& a, const AttentionTiles& tiles, int64_t rows_shared,
            const char* name, cudaStream_t stream) {
  if (tiles.count() == 0) return;
  const auto bytes = static_cast<size_t>(kWarps * rows_shared * a.d * 4);
  WAM_CHECK(bytes <= 200 * 1024) << "heads of " << a.d << " channels";
  if (bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)),
          name);
  }
  const dim3 grid(static_cast<unsigned>(tiles.count() * (kWideAttentionTile / kWarps)),
                  static_cast<unsigned>(a.batch * a.heads));
  kernel<<<grid, kWarps * kWarp, bytes, stream>>>(a, tiles.tiles(), tiles.ranges());
  check_launch(name);
}

}  // namespace

void launch_plain_attention(const AttentionArgs& a, const AttentionTiles& queries,
                            cudaStream_t stream) {
  dispatch_float(a.dtype, [&]<typename T>() {
    launch(attention_kernel<T>, a, queries, 2, "attention", stream);
  });
}

void launch_plain_attention_grad(const AttentionArgs& a, const AttentionTiles& queries,
                                 const AttentionTiles& keys, cudaStream_t stream) {
  dispatch_float(a.dtype, [&]<typename T>() {
    const int64_t rows = a.batch * a.queries * a.heads;
    if (rows > 0) {
      attention_stats_kernel<T><<<static_cast<unsigned>(ceil_div(rows, 8)), 256, 0, stream>>>(a);
      check_launch("attention_stats");
    }
    launch(attention_dq_kernel<T>, a, queries, 3, "attention_dq", stream);
    launch(attention_dkv_kernel<T>, a, keys, 4, "attention_dkv", stream);
  });
}

}  // namespace wam::cuda
