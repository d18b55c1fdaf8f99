// What the tensor-core attention kernels share. A block of three warpgroups works through items (a
// tile of 128 rows and a head): one warp of the first warpgroup fetches with the copy engine, the
// other two warpgroups multiply, 64 rows of the tile each. "Outer" operands are the tile's own
// rows, in two buffers, or in one where they are moved to registers at once ("brief"); "inner" ones
// are the 64 rows of the other side that a step takes, in a ring of stages. Rows that a box reads
// beyond a tile or range are real rows of the same sample, or zeros past the tensor's end; masks
// keep them out of results.
#pragma once

#include "wam/kernels/cuda/attention_hopper.h"
#include "wam/kernels/cuda/hopper.cuh"

namespace wam::cuda::attention {

constexpr int kRows = static_cast<int>(kAttentionStep);  // of a warpgroup, and of a step
constexpr int kThreads = 3 * hopper::kWarpgroup;
constexpr int kConsumerWarps = 8;
// Registers a thread of the copying and of the multiplying warpgroups: 128 and 256 threads of
// 65536.
constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

constexpr int kSlab = kRows * 128;  // bytes of 64 rows of 64 columns, as the copy engine lays them
template <int kHead>
constexpr int kBlock = kHead / 64 * kSlab;  // of 64 rows

struct OuterInfo {
  int begin, count, steps, batch, head;
};
struct StepInfo {
  int begin, count;  // rows, at most 64 of them wanted
};

// Shared memory: kBrief brief and kOuter other outer operands of 128 rows; kStages stages of two
// inner operands of 64 rows with kRowBytes bytes more for each row: a key's bias (4) or a query's
// stats (8).
template <int kHead, int kBrief, int kOuter, int kStages, int kRowBytes>
struct Layout {
  static constexpr int kHeadWidth = kHead, kBriefCount = kBrief, kOuterCount = kOuter;
  static constexpr int kStageCount = kStages, kRowDataBytes = kRowBytes;
  static constexpr int kOperandBytes = 2 * kBlock<kHead>;
  static constexpr int kStageBytes = 2 * kBlock<kHead>;
  static constexpr int kStagesAt = (kBrief + 2 * kOuter) * kOperandBytes;
  static constexpr int kRowDataAt = kStagesAt + kStages * kStageBytes;
  static constexpr int kBarriersAt = kRowDataAt + kStages * kRows * kRowBytes;
  static constexpr int kInfoAt = kBarriersAt + (2 * kStages + 6) * 8;
  static constexpr int kBytes = kInfoAt + kStages * static_cast<int>(sizeof(StepInfo)) +
                                2 * static_cast<int>(sizeof(OuterInfo)) + 1024;  // room to align
  static_assert(kBytes <= 227 * 1024);
};

#ifdef WAM_HOPPER

using hopper::barrier_arrive;
using hopper::barrier_wait;

template <typename L>
struct Shared {
  char* base;
  __device__ explicit Shared(char* raw)
      : base(raw + ((1024 - hopper::shared_address(raw) % 1024) % 1024)) {}
  // Half 0 or 1 of an operand's 128 rows.
  __device__ uint32_t brief(int operand, int half) const {
    return hopper::shared_address(base) +
           static_cast<uint32_t>(operand * L::kOperandBytes + half * kBlock<L::kHeadWidth>);
  }
  __device__ uint32_t outer(int buffer, int operand, int half) const {
    return brief(L::kBriefCount + buffer * L::kOuterCount + operand, half);
  }
  __device__ uint32_t stage(int s, int operand) const {
    return hopper::shared_address(base) + static_cast<uint32_t>(L::kStagesAt + s * L::kStageBytes +
                                                                operand * kBlock<L::kHeadWidth>);
  }
  template <typename T>
  __device__ T* row_data(int s) const {
    static_assert(sizeof(T) == L::kRowDataBytes);
    return reinterpret_cast<T*>(base + L::kRowDataAt) + s * kRows;
  }
  __device__ uint64_t* full(int s) const { return barriers() + s; }
  __device__ uint64_t* empty(int s) const { return barriers() + L::kStageCount + s; }
  __device__ uint64_t* outer_full(int b) const { return barriers() + 2 * L::kStageCount + b; }
  __device__ uint64_t* outer_empty(int b) const { return outer_full(b) + 2; }
  __device__ uint64_t* brief_full() const { return outer_full(4); }
  __device__ uint64_t* brief_empty() const { return outer_full(5); }
  __device__ StepInfo& step_info(int s) const {
    return reinterpret_cast<StepInfo*>(base + L::kInfoAt)[s];
  }
  __device__ OuterInfo& outer_info(int b) const {
    return reinterpret_cast<OuterInfo*>(base + L::kInfoAt + L::kStageCount * sizeof(StepInfo))[b];
  }
  __device__ void init(bool has_row_data) const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < L::kStageCount; ++s) {
        hopper::barrier_init(full(s), has_row_data ? 1 + kWarp : 1);
        hopper::barrier_init(empty(s), kConsumerWarps);
      }
      for (int b = 0; b < 2; ++b) {
        hopper::barrier_init(outer_full(b), 1);
        hopper::barrier_init(outer_empty(b), kConsumerWarps);
      }
      hopper::barrier_init(brief_full(), 1);
      hopper::barrier_init(brief_empty(), kConsumerWarps);
      hopper::barriers_initialised();
    }
    __syncthreads();
  }

 private:
  __device__ uint64_t* barriers() const {
    return reinterpret_cast<uint64_t*>(base + L::kBarriersAt);
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

// Item i: sample by sample, then some heads at a time (their rows stay in the L2 cache), then the
// tiles, heaviest first.
struct Item {
  AttentionTile tile;
  int batch, head;
};
__device__ __forceinline__ Item item_of(const Problem& p, int i) {
  const int heads = static_cast<int>(p.args.heads), of_sample = p.num_tiles * heads;
  const int rest = i % of_sample, of_group = p.num_tiles * p.heads_together;
  const int first_head = rest / of_group * p.heads_together;
  const int group = min(p.heads_together, heads - first_head), in_group = rest % of_group;
  return {p.tiles[in_group / group], i / of_sample, first_head + in_group % group};
}

// 64 rows of a head from row `row` on.
template <int kHead>
__device__ __forceinline__ void fetch_rows(uint32_t to, const CUtensorMap* map, int row, int head,
                                           int batch, uint64_t* barrier) {
#pragma unroll
  for (int slab = 0; slab < kHead / 64; ++slab) {
    hopper::copy_box(to + static_cast<uint32_t>(slab * kSlab), map, 64 * slab, head, row, batch,
                     barrier);
  }
}

// Starts fetching kCount outer operands from `to` on, of which `halves` halves are wanted.
template <typename L, int kCount>
__device__ __forceinline__ void fetch_outer(uint32_t to, const CUtensorMap* const (&maps)[2],
                                            const Item& item, uint64_t* full) {
  constexpr int kHead = L::kHeadWidth;
  const int halves = item.tile.count > kRows ? 2 : 1;
  hopper::barrier_arrive_expecting(full, static_cast<uint32_t>(kCount * halves * kBlock<kHead>));
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    for (int half = 0; half < halves; ++half) {
      fetch_rows<kHead>(to + static_cast<uint32_t>(k * L::kOperandBytes + half * kBlock<kHead>),
                        maps[k], item.tile.begin + half * kRows, item.head, item.batch, full);
    }
  }
}

struct Operands {
  const CUtensorMap *brief[2], *outer[2], *inner[2];
};

// What the copying warp does. `row_data`: of an item's inner rows, or null.
template <typename L, typename RowData>
__device__ __forceinline__ void produce(const Problem& p, const Shared<L>& shared,
                                        const Operands& operands, const RowData& row_data) {
  constexpr int kHead = L::kHeadWidth, kRowBytes = L::kRowDataBytes;
  const int lane = static_cast<int>(threadIdx.x);
  Ring<L::kStageCount> ring;
  Ring<2> outer;
  Ring<1> brief;
  for (int i = static_cast<int>(blockIdx.x); i < p.items; i += static_cast<int>(gridDim.x)) {
    const Item item = item_of(p, i);
    const AttentionTile& tile = item.tile;
    if constexpr (L::kBriefCount > 0) {
      barrier_wait(shared.brief_empty(), brief.empty_parity());
      if (lane == 0) {
        fetch_outer<L, L::kBriefCount>(shared.brief(0, 0), operands.brief, item,
                                       shared.brief_full());
      }
      brief.next();
    }
    barrier_wait(shared.outer_empty(outer.at), outer.empty_parity());
    if (lane == 0) {
      shared.outer_info(outer.at) = {tile.begin, tile.count, tile.steps, item.batch, item.head};
      fetch_outer<L, L::kOuterCount>(shared.outer(outer.at, 0, 0), operands.outer, item,
                                     shared.outer_full(outer.at));
    }
    outer.next();
    const char* rows = reinterpret_cast<const char*>(row_data(item));
    for (int r = 0; r < tile.ranges; ++r) {
      const AttentionRange range = p.ranges[tile.first_range + r];
      for (int first = 0; first < range.count; first += kRows) {
        const int begin = range.begin + first, count = min(kRows, range.count - first);
        uint64_t* full = shared.full(ring.at);
        barrier_wait(shared.empty(ring.at), ring.empty_parity());
        if (lane == 0) {
          shared.step_info(ring.at) = {begin, count};
          hopper::barrier_arrive_expecting(full, static_cast<uint32_t>(L::kStageBytes));
          fetch_rows<kHead>(shared.stage(ring.at, 0), operands.inner[0], begin, item.head,
                            item.batch, full);
          fetch_rows<kHead>(shared.stage(ring.at, 1), operands.inner[1], begin, item.head,
                            item.batch, full);
        }
        if (rows != nullptr) {
          const uint32_t to = hopper::shared_address(shared.base) +
                              static_cast<uint32_t>(L::kRowDataAt + ring.at * kRows * kRowBytes);
#pragma unroll
          for (int row = lane; row < kRows; row += kWarp) {
            const bool valid = row < count;
            hopper::copy_piece<kRowBytes>(to + static_cast<uint32_t>(row * kRowBytes),
                                          rows + int64_t{valid ? begin + row : 0} * kRowBytes,
                                          valid);
          }
          hopper::barrier_arrive_after_copies(full);
        }
        __syncwarp();
        ring.next();
      }
    }
  }
}

// Row data: the biases of a sample's keys, and the stats of a head's queries.
__device__ __forceinline__ const float* key_bias_of(const AttentionArgs& a, int batch) {
  return a.key_bias == nullptr ? nullptr : a.key_bias + batch * a.key_bias_batch;
}
__device__ __forceinline__ float2* stats_of(const AttentionArgs& a, int batch, int head) {
  return a.stats + (batch * a.heads + head) * a.queries;
}

// d [64, 64] = rows of a times rows of b, both blocks of 64 rows in shared memory.
template <int kHead>
__device__ __forceinline__ void multiply_rows(float (&d)[32], uint32_t a, uint32_t b) {
#pragma unroll
  for (int step = 0; step < kHead / 16; ++step) {
    const auto at = static_cast<uint32_t>(step / 4 * kSlab + step % 4 * 32);
    hopper::multiply_ss(d, hopper::descriptor(a, at, 16), hopper::descriptor(b, at, 16), step > 0);
  }
}
// The same with the rows of a in registers.
template <int kHead>
__device__ __forceinline__ void multiply_rows(float (&d)[32], const uint32_t (&a)[kHead / 16][4],
                                              uint32_t b) {
#pragma unroll
  for (int step = 0; step < kHead / 16; ++step) {
    const auto at = static_cast<uint32_t>(step / 4 * kSlab + step % 4 * 32);
    hopper::multiply_rs_rows(d, a[step], hopper::descriptor(b, at, 16), step > 0);
  }
}
// d [64, kHead] += p [64, 64] times the 64 rows of b; p as accumulators of a product, rounded to
// bf16.
template <int kHead>
__device__ __forceinline__ void multiply_columns(float (&d)[kHead / 2], const uint32_t (&p)[16],
                                                 uint32_t b) {
#pragma unroll
  for (int step = 0; step < kRows / 16; ++step) {
    const uint32_t a[4] = {p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3]};
    hopper::multiply_rs(d, a, hopper::descriptor(b, static_cast<uint32_t>(step * 16 * 128), kSlab));
  }
}

// A block of 64 rows as first operands of products, from shared memory.
template <int kHead>
__device__ __forceinline__ void load_rows(uint32_t (&a)[kHead / 16][4], uint32_t block) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = static_cast<int>(threadIdx.x) % hopper::kWarpgroup / kWarp * 16 + lane % 16;
#pragma unroll
  for (int step = 0; step < kHead / 16; ++step) {
    const int piece = 2 * step + lane / 16;  // of 16 bytes
    hopper::load_matrices(a[step], block + static_cast<uint32_t>(piece / 8 * kSlab + row * 128 +
                                                                 ((piece % 8) ^ (row % 8)) * 16));
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
  // The same in all lanes, which the compiler would not know.
  const int group = __shfl_sync(kAllLanes, thread / hopper::kWarpgroup, 0);
  return {group, thread / kWarp * 16 + lane / 4, lane % 4 * 2};
}

// Thread t of a quad holds m[t][0..3]; afterwards m[0..3][t].
__device__ __forceinline__ void transpose_quad(uint32_t (&v)[4]) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (threadIdx.x & static_cast<unsigned>(bit)) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & bit) != 0) continue;
      const uint32_t got = __shfl_xor_sync(kAllLanes, upper ? v[i] : v[i + bit], bit);
      (upper ? v[i] : v[i + bit]) = got;
    }
  }
}

// Writes factor * d to rows of a head, 16 bytes a thread and store. All threads of the warpgroup.
template <int kHead>
__device__ __forceinline__ void store_rows(const float (&d)[kHead / 2], bf16* first, int64_t stride,
                                           const Place& at, int count, int width, float factor0,
                                           float factor1) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = at.row + 8 * half;
    const float factor = half == 0 ? factor0 : factor1;
    bf16* to = first + row * stride;
#pragma unroll
    for (int j = 0; j < kHead / 8; j += 4) {
      uint32_t v[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int e = 4 * (j + i) + 2 * half;
        v[i] = hopper::pack2(d[e] * factor, d[e + 1] * factor);
      }
      transpose_quad(v);
      const int column = 8 * j + 4 * at.column;
      if (row < count && column < width) {
        *reinterpret_cast<uint4*>(to + column) = {v[0], v[1], v[2], v[3]};
      }
    }
  }
}

#endif  // WAM_HOPPER

template <typename Kernel>
void launch(Kernel kernel, int bytes, const Problem& p, const char* name, cudaStream_t stream) {
  if (p.items == 0) return;
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

}  // namespace wam::cuda::attention
