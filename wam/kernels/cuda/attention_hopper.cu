// Attention on Hopper's tensor cores. A block of three warpgroups works through items (a tile and a
// head); the first warpgroup copies rows into shared memory, the other two multiply, 64 rows of the
// tile each. Products are wgmma with f32 accumulators; probabilities and score gradients go in as
// bf16.
//   forward: S = Q K^T, softmax with a running maximum, O += P V
//   dq:      S and dP = dO V^T again, dQ += dS K
//   dk, dv:  S^T and dP^T again, dV += P^T dO, dK += dS^T Q, over the queries that see the tile
// Every sum runs in one fixed order: no atomics, and dk, dv need no second pass.
#include "wam/kernels/cuda/attention.h"
#include "wam/kernels/cuda/hopper.cuh"

namespace wam::cuda {
namespace {

constexpr int kRows = 64;  // rows of a warpgroup, and of a step's tile of the other side
constexpr int kTile = static_cast<int>(kAttentionTile);
constexpr int kThreads = 3 * hopper::kWarpgroup;
[[maybe_unused]] constexpr int kConsumerWarps = 8;
// Registers a thread of the copying and of the multiplying warpgroups: 128 and 256 threads of 65536.
[[maybe_unused]] constexpr int kProducerRegisters = 56, kConsumerRegisters = 224;
[[maybe_unused]] constexpr int kDkvProducerRegisters = 40, kDkvConsumerRegisters = 232;
[[maybe_unused]] constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

struct Problem {
  AttentionArgs args;
  const AttentionTile* tiles;
  const AttentionRange* ranges;
  int num_tiles, items;
};

// Bytes of a tile of `rows` rows of kHead columns, and of one of its slabs of 64 columns.
template <int kHead>
__host__ __device__ constexpr int tile_bytes(int rows) {
  return rows * kHead * 2;
}
[[maybe_unused]] __host__ __device__ constexpr int slab_bytes(int rows) { return rows * 128; }

// kOuter tiles of 128 rows (double buffered), kStages stages of two tiles of 64 rows.
template <int kHead, int kOuter, int kStages>
struct SharedLayout {
  static constexpr int kOuterBytes = kOuter * tile_bytes<kHead>(kTile);
  static constexpr int kStageBytes = 2 * tile_bytes<kHead>(kRows);
  static constexpr int kStatsAt = 2 * kOuterBytes + kStages * kStageBytes;
  static constexpr int kBarriersAt = kStatsAt + kStages * 2 * kRows * 4;
  static constexpr int kBytes = kBarriersAt + (2 * kStages + 4) * 8 + 1024;  // and room to align
};

#ifdef WAM_HOPPER

using hopper::barrier_arrive;
using hopper::barrier_test;
using hopper::barrier_wait;

template <typename Layout, int kStages>
struct Shared {
  char* base;
  __device__ explicit Shared(char* raw)
      : base(raw + ((1024 - hopper::shared_address(raw) % 1024) % 1024)) {}
  __device__ char* outer(int buffer) const { return base + buffer * Layout::kOuterBytes; }
  __device__ char* stage(int s) const {
    return base + 2 * Layout::kOuterBytes + s * Layout::kStageBytes;
  }
  __device__ float* stats(int s) const {
    return reinterpret_cast<float*>(base + Layout::kStatsAt) + s * 2 * kRows;
  }
  __device__ uint64_t* barriers() const {
    return reinterpret_cast<uint64_t*>(base + Layout::kBarriersAt);
  }
  __device__ uint64_t* full(int s) const { return barriers() + s; }
  __device__ uint64_t* empty(int s) const { return barriers() + kStages + s; }
  __device__ uint64_t* outer_full(int b) const { return barriers() + 2 * kStages + b; }
  __device__ uint64_t* outer_empty(int b) const { return barriers() + 2 * kStages + 2 + b; }
  __device__ void init() const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < kStages; ++s) {
        hopper::barrier_init(full(s), hopper::kWarpgroup);
        hopper::barrier_init(empty(s), kConsumerWarps);
      }
      for (int b = 0; b < 2; ++b) {
        hopper::barrier_init(outer_full(b), hopper::kWarpgroup);
        hopper::barrier_init(outer_empty(b), kConsumerWarps);
      }
    }
    __syncthreads();
  }
};

// A place in a ring of buffers and how often it has been gone round.
template <int kSize>
struct Ring {
  int at = 0;
  uint32_t round = 0;
  __device__ void next() {
    if (++at == kSize) {
      at = 0;
      ++round;
    }
  }
  __device__ uint32_t full_parity() const { return round & 1; }
  __device__ uint32_t empty_parity() const { return (round & 1) ^ 1; }  // passes in the first round
};

// The copying side: groups of copies, each announced on its barrier once it has landed. The newest
// group stays in flight while the next is issued, unless the copier would have to wait for room.
class Copier {
 public:
  __device__ void wait_for_room(uint64_t* empty, uint32_t parity) {
    if (barrier_test(empty, parity)) return;
    flush();
    barrier_wait(empty, parity);
  }
  __device__ void commit(uint64_t* full) {
    hopper::copies_commit();
    if (pending_ != nullptr) {
      hopper::copies_wait<1>();
      announce();
    }
    pending_ = full;
  }
  __device__ void flush() {
    if (pending_ == nullptr) return;
    hopper::copies_wait<0>();
    announce();
    pending_ = nullptr;
  }

 private:
  __device__ void announce() {
    hopper::fence_for_products();
    barrier_arrive(pending_);
  }
  uint64_t* pending_ = nullptr;
};

// Copies `count` of kTileRows rows, the rest zeros. `first` points at the tile's first row of a
// head.
template <int kHead, int kTileRows>
__device__ __forceinline__ void copy_tile(char* to, const bf16* first, int64_t stride, int count,
                                          int d) {
  constexpr int kPieces = kHead / 8;  // of 16 bytes a row
  const uint32_t base = hopper::shared_address(to);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kPieces; i += hopper::kWarpgroup) {
    const int row = i / kPieces, piece = i % kPieces;
    const uint32_t at =
        base + (piece / 8) * slab_bytes(kTileRows) + row * 128 + ((piece % 8) ^ (row % 8)) * 16;
    const bool valid = row < count && piece * 8 < d;
    hopper::copy16(at, valid ? first + row * stride + piece * 8 : first, valid);
  }
}

struct Item {
  AttentionTile tile;
  int64_t batch, head;
};
__device__ __forceinline__ Item item_of(const Problem& p, int i) {
  const int bh = i / p.num_tiles;
  return {p.tiles[i % p.num_tiles], bh / p.args.heads, bh % p.args.heads};
}

// d [64, 64] = rows of a (a 128-row tile's warpgroup half) times rows of b (a 64-row tile).
template <int kHead>
__device__ __forceinline__ void multiply_rows(float (&d)[32], uint32_t a, uint32_t b) {
#pragma unroll
  for (int step = 0; step < kHead / 16; ++step) {
    const uint32_t along = static_cast<uint32_t>(step % 4) * 32;
    hopper::multiply_ss(
        d, hopper::descriptor(a + static_cast<uint32_t>(step / 4 * slab_bytes(kTile)) + along, 16),
        hopper::descriptor(b + static_cast<uint32_t>(step / 4 * slab_bytes(kRows)) + along, 16),
        step > 0);
  }
}

// d [64, kHead] += p [64, 64] times the 64 rows of b; p as accumulators of a product, rounded to
// bf16.
template <int kHead>
__device__ __forceinline__ void multiply_registers(float (&d)[kHead / 2], const uint32_t (&p)[16],
                                                   uint32_t b) {
#pragma unroll
  for (int step = 0; step < kRows / 16; ++step) {
    const uint32_t a[4] = {p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3]};
    hopper::multiply_rs(
        d, a, hopper::descriptor(b + static_cast<uint32_t>(step) * 16 * 128, slab_bytes(kRows)));
  }
}

__device__ __forceinline__ void pack(const float (&x)[32], uint32_t (&p)[16]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) p[i] = hopper::pack2(x[2 * i], x[2 * i + 1]);
}

__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

// A thread's place in a warpgroup's accumulators: elements 4j, 4j+1 are row, columns 8j + column
// and the next; 4j+2, 4j+3 the same columns of row + 8.
struct Place {
  int group, row, column;  // row within the tile of 128
};
__device__ __forceinline__ Place place_of_thread() {
  const int thread = static_cast<int>(threadIdx.x) - hopper::kWarpgroup;
  const int lane = thread % kWarp;
  return {thread / hopper::kWarpgroup, thread / kWarp * 16 + lane / 4, lane % 4 * 2};
}

// Writes factor * d to rows of a head.
template <int kHead>
__device__ __forceinline__ void store_rows(const float (&d)[kHead / 2], bf16* first, int64_t stride,
                                           const Place& at, int count, int width, float factor0,
                                           float factor1) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = at.row + 8 * half;
    if (row >= count) continue;
    const float factor = half == 0 ? factor0 : factor1;
#pragma unroll
    for (int j = 0; j < kHead / 8; ++j) {
      const int column = 8 * j + at.column;
      if (column >= width) continue;
      *reinterpret_cast<uint32_t*>(first + row * stride + column) =
          hopper::pack2(d[4 * j + 2 * half] * factor, d[4 * j + 2 * half + 1] * factor);
    }
  }
}

// scale * log2(e) * score + biases, in the log2 domain. Columns are keys.
__device__ __forceinline__ void add_biases(const AttentionArgs& a, const Item& item, int64_t query0,
                                           int64_t key0, int keys, int column, float (&s)[32]) {
  if (a.key_bias == nullptr && a.pair_bias == nullptr) return;
  const float* key_bias =
      a.key_bias == nullptr ? nullptr : a.key_bias + item.batch * a.key_bias_batch + key0;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int key = i / 4 * 8 + column + i % 2;
    if (key >= keys) continue;
    float bias = key_bias == nullptr ? 0.0f : key_bias[key];
    const int64_t query = query0 + (i % 4 >= 2 ? 8 : 0);
    if (a.pair_bias != nullptr && query < a.queries) {
      bias += a.pair_bias[(item.head * a.queries + query) * a.keys + key0 + key];
    }
    s[i] += bias * kLog2E;
  }
}

#endif  // WAM_HOPPER

// ---- forward: outer buffer = Q; stages = K, V ----

constexpr int kForwardStages = 3;
template <int kHead>
using ForwardLayout = SharedLayout<kHead, 1, kForwardStages>;

template <int kHead>
__global__ void __launch_bounds__(kThreads, 1) hopper_attention_kernel(const Problem p) {
#ifdef WAM_HOPPER
  using Layout = ForwardLayout<kHead>;
  extern __shared__ char raw[];
  const Shared<Layout, kForwardStages> shared(raw);
  shared.init();
  const AttentionArgs& a = p.args;
  Ring<kForwardStages> ring;
  Ring<2> outer;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<kProducerRegisters>();
    Copier copier;
    for (int i = static_cast<int>(blockIdx.x); i < p.items; i += static_cast<int>(gridDim.x)) {
      const Item item = item_of(p, i);
      const int64_t kv = item.batch * a.kv_batch + item.head * a.d;
      copier.wait_for_room(shared.outer_empty(outer.at), outer.empty_parity());
      copy_tile<kHead, kTile>(shared.outer(outer.at),
                              static_cast<const bf16*>(a.q) + item.batch * a.q_batch +
                                  item.tile.begin * a.q_row + item.head * a.d,
                              a.q_row, item.tile.count, static_cast<int>(a.d));
      copier.commit(shared.outer_full(outer.at));
      outer.next();
      for (int r = 0; r < item.tile.ranges; ++r) {
        const AttentionRange range = p.ranges[item.tile.first_range + r];
        for (int first = 0; first < range.count; first += kRows) {
          const int64_t at = kv + (range.begin + first) * a.kv_row;
          copier.wait_for_room(shared.empty(ring.at), ring.empty_parity());
          copy_tile<kHead, kRows>(shared.stage(ring.at), static_cast<const bf16*>(a.k) + at,
                                  a.kv_row, range.count - first, static_cast<int>(a.d));
          copy_tile<kHead, kRows>(shared.stage(ring.at) + tile_bytes<kHead>(kRows),
                                  static_cast<const bf16*>(a.v) + at, a.kv_row, range.count - first,
                                  static_cast<int>(a.d));
          copier.commit(shared.full(ring.at));
          ring.next();
        }
      }
    }
    copier.flush();
    return;
  }
  hopper::take_registers<kConsumerRegisters>();
  const Place place = place_of_thread();
  const bool announces = threadIdx.x % kWarp == 0;
  const float scale = a.scale * kLog2E;
  for (int i = static_cast<int>(blockIdx.x); i < p.items; i += static_cast<int>(gridDim.x)) {
    const Item item = item_of(p, i);
    const bool active = item.tile.count > place.group * kRows;
    float o[kHead / 2] = {}, most[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
    barrier_wait(shared.outer_full(outer.at), outer.full_parity());
    const uint32_t q = hopper::shared_address(shared.outer(outer.at)) +
                       static_cast<uint32_t>(place.group * slab_bytes(kRows));
    for (int r = 0; r < item.tile.ranges; ++r) {
      const AttentionRange range = p.ranges[item.tile.first_range + r];
      for (int first = 0; first < range.count; first += kRows) {
        barrier_wait(shared.full(ring.at), ring.full_parity());
        if (active) {
          const uint32_t k = hopper::shared_address(shared.stage(ring.at));
          const int keys = range.count - first;
          float s[32];
          hopper::products_begin();
          multiply_rows<kHead>(s, q, k);
          hopper::products_commit();
          hopper::products_wait<0>();
#pragma unroll
          for (int e = 0; e < 32; ++e) s[e] *= scale;
          add_biases(a, item, item.tile.begin + place.row, range.begin + first, keys, place.column,
                     s);
          if (keys < kRows) {
#pragma unroll
            for (int e = 0; e < 32; ++e) {
              if (e / 4 * 8 + place.column + e % 2 >= keys) s[e] = -INFINITY;
            }
          }
          float largest[2] = {most[0], most[1]};
#pragma unroll
          for (int e = 0; e < 32; ++e) largest[e % 4 / 2] = fmaxf(largest[e % 4 / 2], s[e]);
          float factor[2], base[2];
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            largest[half] = quad_max(largest[half]);
            base[half] = largest[half] == -INFINITY ? 0.0f : largest[half];
            factor[half] = hopper::exp2_fast(most[half] - base[half]);
            most[half] = largest[half];
            total[half] *= factor[half];
          }
#pragma unroll
          for (int e = 0; e < 32; ++e) {
            s[e] = hopper::exp2_fast(s[e] - base[e % 4 / 2]);
            total[e % 4 / 2] += s[e];
          }
#pragma unroll
          for (int e = 0; e < kHead / 2; ++e) o[e] *= factor[e % 4 / 2];
          uint32_t probabilities[16];
          pack(s, probabilities);
          hopper::products_begin();
          multiply_registers<kHead>(o, probabilities, k + tile_bytes<kHead>(kRows));
          hopper::products_commit();
          hopper::products_wait<0>();
        }
        __syncwarp();
        if (announces) barrier_arrive(shared.empty(ring.at));
        ring.next();
      }
    }
    __syncwarp();
    if (announces) barrier_arrive(shared.outer_empty(outer.at));
    outer.next();
    if (!active) continue;
    const float sum0 = quad_sum(total[0]), sum1 = quad_sum(total[1]);
    const int64_t width = a.heads * a.d;
    bf16* out = static_cast<bf16*>(a.out) + (item.batch * a.queries + item.tile.begin) * width +
                item.head * a.d;
    store_rows<kHead>(o, out, width, place, item.tile.count, static_cast<int>(a.d), 1.0f / sum0,
                      1.0f / sum1);
    if (place.column == 0) {
      float* lse = a.lse + (item.batch * a.heads + item.head) * a.queries + item.tile.begin;
      if (place.row < item.tile.count) lse[place.row] = (most[0] + log2f(sum0)) * kLn2;
      if (place.row + 8 < item.tile.count) lse[place.row + 8] = (most[1] + log2f(sum1)) * kLn2;
    }
  }
#endif
}

// ---- dq: outer buffer = Q, dO; stages = K, V ----

constexpr int kGradStages = 2;
template <int kHead>
using GradLayout = SharedLayout<kHead, 2, kGradStages>;

template <int kHead>
__global__ void __launch_bounds__(kThreads, 1) hopper_attention_dq_kernel(const Problem p) {
#ifdef WAM_HOPPER
  using Layout = GradLayout<kHead>;
  extern __shared__ char raw[];
  const Shared<Layout, kGradStages> shared(raw);
  shared.init();
  const AttentionArgs& a = p.args;
  const int64_t width = a.heads * a.d;
  Ring<kGradStages> ring;
  Ring<2> outer;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<kProducerRegisters>();
    Copier copier;
    for (int i = static_cast<int>(blockIdx.x); i < p.items; i += static_cast<int>(gridDim.x)) {
      const Item item = item_of(p, i);
      const int64_t kv = item.batch * a.kv_batch + item.head * a.d;
      const int d = static_cast<int>(a.d);
      copier.wait_for_room(shared.outer_empty(outer.at), outer.empty_parity());
      copy_tile<kHead, kTile>(shared.outer(outer.at),
                              static_cast<const bf16*>(a.q) + item.batch * a.q_batch +
                                  item.tile.begin * a.q_row + item.head * a.d,
                              a.q_row, item.tile.count, d);
      copy_tile<kHead, kTile>(shared.outer(outer.at) + tile_bytes<kHead>(kTile),
                              static_cast<const bf16*>(a.dout) +
                                  (item.batch * a.queries + item.tile.begin) * width +
                                  item.head * a.d,
                              width, item.tile.count, d);
      copier.commit(shared.outer_full(outer.at));
      outer.next();
      for (int r = 0; r < item.tile.ranges; ++r) {
        const AttentionRange range = p.ranges[item.tile.first_range + r];
        for (int first = 0; first < range.count; first += kRows) {
          const int64_t at = kv + (range.begin + first) * a.kv_row;
          copier.wait_for_room(shared.empty(ring.at), ring.empty_parity());
          copy_tile<kHead, kRows>(shared.stage(ring.at), static_cast<const bf16*>(a.k) + at,
                                  a.kv_row, range.count - first, d);
          copy_tile<kHead, kRows>(shared.stage(ring.at) + tile_bytes<kHead>(kRows),
                                  static_cast<const bf16*>(a.v) + at, a.kv_row, range.count - first,
                                  d);
          copier.commit(shared.full(ring.at));
          ring.next();
        }
      }
    }
    copier.flush();
    return;
  }
  hopper::take_registers<kConsumerRegisters>();
  const Place place = place_of_thread();
  const bool announces = threadIdx.x % kWarp == 0;
  const float scale = a.scale * kLog2E;
  for (int i = static_cast<int>(blockIdx.x); i < p.items; i += static_cast<int>(gridDim.x)) {
    const Item item = item_of(p, i);
    const bool active = item.tile.count > place.group * kRows;
    float dq[kHead / 2] = {}, lse[2], delta[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = place.row + 8 * half;
      const int64_t at = (item.batch * a.heads + item.head) * a.queries + item.tile.begin + row;
      lse[half] = row < item.tile.count ? a.lse[at] * kLog2E : INFINITY;
      delta[half] = row < item.tile.count ? a.delta[at] : 0.0f;
    }
    barrier_wait(shared.outer_full(outer.at), outer.full_parity());
    const uint32_t q = hopper::shared_address(shared.outer(outer.at)) +
                       static_cast<uint32_t>(place.group * slab_bytes(kRows));
    for (int r = 0; r < item.tile.ranges; ++r) {
      const AttentionRange range = p.ranges[item.tile.first_range + r];
      for (int first = 0; first < range.count; first += kRows) {
        barrier_wait(shared.full(ring.at), ring.full_parity());
        if (active) {
          const uint32_t k = hopper::shared_address(shared.stage(ring.at));
          const int keys = range.count - first;
          float s[32], dp[32];
          hopper::products_begin();
          multiply_rows<kHead>(s, q, k);
          hopper::products_commit();
          multiply_rows<kHead>(dp, q + tile_bytes<kHead>(kTile), k + tile_bytes<kHead>(kRows));
          hopper::products_commit();
          hopper::products_wait<1>();
#pragma unroll
          for (int e = 0; e < 32; ++e) s[e] *= scale;
          add_biases(a, item, item.tile.begin + place.row, range.begin + first, keys, place.column,
                     s);
#pragma unroll
          for (int e = 0; e < 32; ++e) {
            const bool seen = keys >= kRows || e / 4 * 8 + place.column + e % 2 < keys;
            s[e] = seen ? hopper::exp2_fast(s[e] - lse[e % 4 / 2]) : 0.0f;
          }
          hopper::products_wait<0>();
#pragma unroll
          for (int e = 0; e < 32; ++e) s[e] *= dp[e] - delta[e % 4 / 2];
          uint32_t ds[16];
          pack(s, ds);
          hopper::products_begin();
          multiply_registers<kHead>(dq, ds, k);
          hopper::products_commit();
          hopper::products_wait<0>();
        }
        __syncwarp();
        if (announces) barrier_arrive(shared.empty(ring.at));
        ring.next();
      }
    }
    __syncwarp();
    if (announces) barrier_arrive(shared.outer_empty(outer.at));
    outer.next();
    if (!active) continue;
    bf16* out = static_cast<bf16*>(a.dq) + item.batch * a.q_batch + item.tile.begin * a.q_row +
                item.head * a.d;
    store_rows<kHead>(dq, out, a.q_row, place, item.tile.count, static_cast<int>(a.d), a.scale,
                      a.scale);
  }
#endif
}

// ---- dk, dv: outer buffer = K, V; stages = Q, dO and the queries' lse and delta ----

template <int kHead>
__global__ void __launch_bounds__(kThreads, 1) hopper_attention_dkv_kernel(const Problem p) {
#ifdef WAM_HOPPER
  using Layout = GradLayout<kHead>;
  extern __shared__ char raw[];
  const Shared<Layout, kGradStages> shared(raw);
  shared.init();
  const AttentionArgs& a = p.args;
  const int64_t width = a.heads * a.d;
  Ring<kGradStages> ring;
  Ring<2> outer;
  if (threadIdx.x < hopper::kWarpgroup) {
    hopper::keep_registers<kDkvProducerRegisters>();
    Copier copier;
    for (int i = static_cast<int>(blockIdx.x); i < p.items; i += static_cast<int>(gridDim.x)) {
      const Item item = item_of(p, i);
      const int64_t kv = item.batch * a.kv_batch + item.tile.begin * a.kv_row + item.head * a.d;
      const int d = static_cast<int>(a.d);
      copier.wait_for_room(shared.outer_empty(outer.at), outer.empty_parity());
      copy_tile<kHead, kTile>(shared.outer(outer.at), static_cast<const bf16*>(a.k) + kv, a.kv_row,
                              item.tile.count, d);
      copy_tile<kHead, kTile>(shared.outer(outer.at) + tile_bytes<kHead>(kTile),
                              static_cast<const bf16*>(a.v) + kv, a.kv_row, item.tile.count, d);
      copier.commit(shared.outer_full(outer.at));
      outer.next();
      const int64_t stats = (item.batch * a.heads + item.head) * a.queries;
      for (int r = 0; r < item.tile.ranges; ++r) {
        const AttentionRange range = p.ranges[item.tile.first_range + r];
        for (int first = 0; first < range.count; first += kRows) {
          const int64_t query = range.begin + first;
          copier.wait_for_room(shared.empty(ring.at), ring.empty_parity());
          copy_tile<kHead, kRows>(shared.stage(ring.at),
                                  static_cast<const bf16*>(a.q) + item.batch * a.q_batch +
                                      query * a.q_row + item.head * a.d,
                                  a.q_row, range.count - first, d);
          copy_tile<kHead, kRows>(shared.stage(ring.at) + tile_bytes<kHead>(kRows),
                                  static_cast<const bf16*>(a.dout) +
                                      (item.batch * a.queries + query) * width + item.head * a.d,
                                  width, range.count - first, d);
          const int row = static_cast<int>(threadIdx.x) % kRows;
          const bool valid = row < range.count - first;
          shared.stats(ring.at)[threadIdx.x] =
              threadIdx.x < kRows ? (valid ? a.lse[stats + query + row] * kLog2E : INFINITY)
                                  : (valid ? a.delta[stats + query + row] : 0.0f);
          copier.commit(shared.full(ring.at));
          ring.next();
        }
      }
    }
    copier.flush();
    return;
  }
  hopper::take_registers<kDkvConsumerRegisters>();
  const Place place = place_of_thread();
  const bool announces = threadIdx.x % kWarp == 0;
  const float scale = a.scale * kLog2E;
  for (int i = static_cast<int>(blockIdx.x); i < p.items; i += static_cast<int>(gridDim.x)) {
    const Item item = item_of(p, i);
    const bool active = item.tile.count > place.group * kRows;
    float dk[kHead / 2] = {}, dv[kHead / 2] = {}, bias[2] = {0, 0};
    if (a.key_bias != nullptr) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = place.row + 8 * half;
        if (row >= item.tile.count) continue;
        bias[half] = a.key_bias[item.batch * a.key_bias_batch + item.tile.begin + row] * kLog2E;
      }
    }
    barrier_wait(shared.outer_full(outer.at), outer.full_parity());
    const uint32_t k = hopper::shared_address(shared.outer(outer.at)) +
                       static_cast<uint32_t>(place.group * slab_bytes(kRows));
    for (int r = 0; r < item.tile.ranges; ++r) {
      const AttentionRange range = p.ranges[item.tile.first_range + r];
      for (int first = 0; first < range.count; first += kRows) {
        barrier_wait(shared.full(ring.at), ring.full_parity());
        if (active) {
          const uint32_t q = hopper::shared_address(shared.stage(ring.at));
          const uint32_t dout = q + tile_bytes<kHead>(kRows);
          const float* lse = shared.stats(ring.at);
          float s[32], dp[32];
          hopper::products_begin();
          multiply_rows<kHead>(s, k, q);
          hopper::products_commit();
          multiply_rows<kHead>(dp, k + tile_bytes<kHead>(kTile), dout);
          hopper::products_commit();
          hopper::products_wait<1>();
#pragma unroll
          for (int e = 0; e < 32; ++e) {
            const int query = e / 4 * 8 + place.column + e % 2;
            float x = s[e] * scale + bias[e % 4 / 2];
            if (a.pair_bias != nullptr) {
              const int row = place.row + (e % 4 >= 2 ? 8 : 0);
              if (row < item.tile.count && query < range.count - first) {
                x += kLog2E *
                     a.pair_bias[(item.head * a.queries + range.begin + first + query) * a.keys +
                                 item.tile.begin + row];
              }
            }
            s[e] = hopper::exp2_fast(x - lse[query]);
          }
          uint32_t probabilities[16], ds[16];
          pack(s, probabilities);
          hopper::products_wait<0>();
          hopper::products_begin();
          multiply_registers<kHead>(dv, probabilities, dout);
          hopper::products_commit();
#pragma unroll
          for (int e = 0; e < 32; ++e)
            s[e] *= dp[e] - lse[kRows + e / 4 * 8 + place.column + e % 2];
          pack(s, ds);
          hopper::products_begin();
          multiply_registers<kHead>(dk, ds, q);
          hopper::products_commit();
          hopper::products_wait<0>();
        }
        __syncwarp();
        if (announces) barrier_arrive(shared.empty(ring.at));
        ring.next();
      }
    }
    __syncwarp();
    if (announces) barrier_arrive(shared.outer_empty(outer.at));
    outer.next();
    if (!active) continue;
    const int64_t at = item.batch * a.kv_batch + item.tile.begin * a.kv_row + item.head * a.d;
    store_rows<kHead>(dk, static_cast<bf16*>(a.dk) + at, a.kv_row, place, item.tile.count,
                      static_cast<int>(a.d), a.scale, a.scale);
    store_rows<kHead>(dv, static_cast<bf16*>(a.dv) + at, a.kv_row, place, item.tile.count,
                      static_cast<int>(a.d), 1.0f, 1.0f);
  }
#endif
}

// ---- launchers ----

int multiprocessors() {
  static const int count = [] {
    int device = 0, number = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device),
          "multiprocessors");
    return number;
  }();
  return count;
}

template <typename Kernel>
void launch(Kernel kernel, int bytes, const AttentionArgs& a, const AttentionTiles& tiles,
            const char* name, cudaStream_t stream) {
  if (tiles.count() == 0) return;
  const Problem p{a, tiles.tiles(), tiles.ranges(), tiles.count(),
                  static_cast<int>(tiles.count() * a.batch * a.heads)};
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
  kernel<<<static_cast<unsigned>(std::min(p.items, multiprocessors())), kThreads,
           static_cast<size_t>(bytes), stream>>>(p);
  check_launch(name);
}

template <typename F>
void dispatch_head(int64_t d, const F& f) {
  if (d <= 64) {
    f.template operator()<64>();
  } else {
    f.template operator()<128>();
  }
}

}  // namespace

void launch_hopper_attention(const AttentionArgs& a, const AttentionTiles& queries,
                             cudaStream_t stream) {
  dispatch_head(a.d, [&]<int kHead>() {
    launch(hopper_attention_kernel<kHead>, ForwardLayout<kHead>::kBytes, a, queries, "attention",
           stream);
  });
}

void launch_hopper_attention_grad(const AttentionArgs& a, const AttentionTiles& queries,
                                  const AttentionTiles& keys, cudaStream_t stream) {
  dispatch_head(a.d, [&]<int kHead>() {
    launch(hopper_attention_dq_kernel<kHead>, GradLayout<kHead>::kBytes, a, queries, "attention_dq",
           stream);
    launch(hopper_attention_dkv_kernel<kHead>, GradLayout<kHead>::kBytes, a, keys, "attention_dkv",
           stream);
  });
}

}  // namespace wam::cuda
