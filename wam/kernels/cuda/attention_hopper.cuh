// What the tensor-core attention kernels share. A block of three or four warpgroups works through
// items (a tile of 128 or 192 rows and a head): one warp of the first warpgroup fetches with the
// copy engine, the other warpgroups multiply, 64 rows of the tile each. "Outer" operands are the
// tile's own rows, in two buffers, or in one where they are moved to registers at once ("brief");
// "inner" ones are the 64 rows of the other side that a step takes, in a ring of stages. Rows that
// a box reads beyond a tile or range are real rows of the same sample, or zeros past the tensor's
// end; masks keep them out of results.
#pragma once

#include "wam/kernels/cuda/attention_hopper.h"
#include "wam/kernels/cuda/hopper.cuh"

namespace wam::cuda::attention {

constexpr int kRows = static_cast<int>(kAttentionStep);  // of a warpgroup, and of a step
// Registers a thread of the copying and of two or three multiplying warpgroups, of 65536.
template <int kGroups>
constexpr int kProducerRegisters = kGroups == 2 ? 24 : 32;
template <int kGroups>
constexpr int kConsumerRegisters = kGroups == 2 ? 240 : 160;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

constexpr int kSlab = kRows * 128;  // bytes of 64 rows of 64 columns, as the copy engine lays them
template <int kHead>
constexpr int kBlock = kHead / 64 * kSlab;  // of 64 rows

struct OuterInfo {
  int begin, count, steps, batch, head, part;
};
struct StepInfo {
  int begin, count;  // rows, at most 64 of them wanted
};

// kGroups multiplying warpgroups. Shared memory: kBrief brief and kOuter other outer operands of a
// tile's rows; kStages stages of two inner operands of 64 rows with kNumbers f32 more for each row:
// a key's bias (1) or a query's stats (2); first the first of all rows.
template <int kHead, int kGroups, int kBrief, int kOuter, int kStages, int kNumbers>
struct Layout {
  static constexpr int kThreads = (1 + kGroups) * hopper::kWarpgroup;
  static constexpr int kConsumerWarps = kGroups * hopper::kWarpgroup / kWarp;
  static constexpr int kHeadWidth = kHead, kBriefCount = kBrief, kOuterCount = kOuter;
  static constexpr int kStageCount = kStages, kNumberCount = kNumbers;
  static constexpr int kOperandBytes = kGroups * kBlock<kHead>;
  static constexpr int kStageBytes = 2 * kBlock<kHead>;
  static constexpr int kStagesAt = (kBrief + 2 * kOuter) * kOperandBytes;
  static constexpr int kNumbersAt = kStagesAt + kStages * kStageBytes;
  static constexpr int kBarriersAt = kNumbersAt + kStages * kRows * kNumbers * 4;
  static constexpr int kInfoAt = kBarriersAt + (2 * kStages + 6) * 8;
  static constexpr int kBytes = kInfoAt + kStages * static_cast<int>(sizeof(StepInfo)) +
                                2 * static_cast<int>(sizeof(OuterInfo)) + 1024;  // room to align
  static_assert(kBytes <= 227 * 1024);
};

#ifdef WAM_HOPPER

using hopper::barrier_arrive_warp;
using hopper::barrier_wait;

template <typename L>
struct Shared {
  char* base;
  __device__ explicit Shared(char* raw)
      : base(raw + ((1024 - hopper::shared_address(raw) % 1024) % 1024)) {}
  // A warpgroup's 64 rows of an operand.
  __device__ uint32_t brief(int operand, int group) const {
    return hopper::shared_address(base) +
           static_cast<uint32_t>(operand * L::kOperandBytes + group * kBlock<L::kHeadWidth>);
  }
  __device__ uint32_t outer(int buffer, int operand, int group) const {
    return brief(L::kBriefCount + buffer * L::kOuterCount + operand, group);
  }
  __device__ uint32_t stage(int s, int operand) const {
    return hopper::shared_address(base) + static_cast<uint32_t>(L::kStagesAt + s * L::kStageBytes +
                                                                operand * kBlock<L::kHeadWidth>);
  }
  __device__ float* numbers(int s) const {
    return reinterpret_cast<float*>(base + L::kNumbersAt) + s * kRows * L::kNumberCount;
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
  __device__ void init(bool has_numbers) const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < L::kStageCount; ++s) {
        hopper::barrier_init(full(s), has_numbers ? 1 + kWarp : 1);
        hopper::barrier_init_for_warps(empty(s), L::kConsumerWarps);
      }
      for (int b = 0; b < 2; ++b) {
        hopper::barrier_init(outer_full(b), 1);
        hopper::barrier_init_for_warps(outer_empty(b), L::kConsumerWarps);
      }
      hopper::barrier_init(brief_full(), 1);
      hopper::barrier_init_for_warps(brief_empty(), L::kConsumerWarps);
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

// What is the same in all lanes, in a way the compiler sees: it may then live in one register of
// the warp.
__device__ __forceinline__ int uniform(int x) { return __shfl_sync(kAllLanes, x, 0); }
__device__ __forceinline__ OuterInfo uniform(const OuterInfo& x) {
  return {uniform(x.begin), uniform(x.count), uniform(x.steps),
          uniform(x.batch), uniform(x.head),  uniform(x.part)};
}

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

// A multiplying warp passes by steps that are not for its rows.
template <typename L>
__device__ __forceinline__ void skip_steps(const Shared<L>& shared, Ring<L::kStageCount>& ring,
                                           int steps) {
  for (int step = 0; step < steps; ++step) {
    barrier_wait(shared.full(ring.at), ring.full_parity());
    barrier_arrive_warp(shared.empty(ring.at));
    ring.next();
  }
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

// Starts fetching kCount outer operands to `to`: the blocks of 64 rows that the tile reaches into.
template <typename L, int kCount>
__device__ __forceinline__ void fetch_outer(uint32_t to, const CUtensorMap* const (&maps)[2],
                                            const Item& item, uint64_t* full) {
  constexpr int kHead = L::kHeadWidth;
  const int blocks = (item.tile.count + kRows - 1) / kRows;
  hopper::barrier_arrive_expecting(full, static_cast<uint32_t>(kCount * blocks * kBlock<kHead>));
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    for (int block = 0; block < blocks; ++block) {
      fetch_rows<kHead>(to + static_cast<uint32_t>(k * L::kOperandBytes + block * kBlock<kHead>),
                        maps[k], item.tile.begin + block * kRows, item.head, item.batch, full);
    }
  }
}

struct Operands {
  const CUtensorMap *brief[2], *outer[2], *inner[2];
};

// The numbers of inner rows: one after the other from `first` on, the next number `stride` on. Rows
// past a range have `absent` for the first one, zero for others.
struct Numbers {
  const float* first;
  int64_t stride;
  float absent;
  bool present;
};

// Starts fetching a step's numbers; the whole warp.
template <int kNumbers>
__device__ __forceinline__ void fetch_numbers(float* to, const Numbers& numbers, int begin,
                                              int count) {
  for (int row = static_cast<int>(threadIdx.x); row < kRows; row += kWarp) {
    if (row >= count) {
#pragma unroll
      for (int k = 0; k < kNumbers; ++k) to[k * kRows + row] = k == 0 ? numbers.absent : 0.0f;
      continue;
    }
#pragma unroll
    for (int k = 0; k < kNumbers; ++k) {
      hopper::copy4(hopper::shared_address(to + k * kRows + row),
                    numbers.first + k * numbers.stride + begin + row, true);
    }
  }
}

// What the copying warp does, and how the block's items are chosen: the first by its number, each
// other one as the next that nobody has taken. Which block takes an item changes no result.
// `numbers_of`: an item's. After the last item the multiplying warps find one of no rows.
template <typename L, typename NumbersOf>
__device__ __forceinline__ void produce(const Problem& p, const Shared<L>& shared,
                                        const Operands& operands, const NumbersOf& numbers_of) {
  constexpr int kHead = L::kHeadWidth;
  const int lane = static_cast<int>(threadIdx.x);
  Ring<L::kStageCount> ring;
  Ring<2> outer;
  Ring<1> brief;
  const int blocks = static_cast<int>(gridDim.x);
  for (int i = static_cast<int>(blockIdx.x); i < p.items;) {
    int next = 0;
    if (lane == 0) next = blocks + atomicAdd(p.counters, 1);
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
      shared.outer_info(outer.at) = {tile.begin, tile.count, tile.steps,
                                     item.batch, item.head,  tile.part};
      fetch_outer<L, L::kOuterCount>(shared.outer(outer.at, 0, 0), operands.outer, item,
                                     shared.outer_full(outer.at));
    }
    outer.next();
    const Numbers numbers = numbers_of(item);
    for (int r = 0; r < tile.ranges; ++r) {
      const AttentionRange range = p.ranges[tile.first_range + r];
      int first = 0;
      do {
        const int begin = range.begin + first, count = min(kRows, range.count - first);
        uint64_t* full = shared.full(ring.at);
        barrier_wait(shared.empty(ring.at), ring.empty_parity());
        if (numbers.present) {
          fetch_numbers<L::kNumberCount>(shared.numbers(ring.at), numbers, begin, count);
          hopper::barrier_arrive_after_copies(full);
          __syncwarp();  // plain stores above come before the arrival below
        }
        if (lane == 0) {
          shared.step_info(ring.at) = {begin, count};
          hopper::barrier_arrive_expecting(full, static_cast<uint32_t>(L::kStageBytes));
          fetch_rows<kHead>(shared.stage(ring.at, 0), operands.inner[0], begin, item.head,
                            item.batch, full);
          fetch_rows<kHead>(shared.stage(ring.at, 1), operands.inner[1], begin, item.head,
                            item.batch, full);
        }
        __syncwarp();
        ring.next();
        first += kRows;
      } while (first < range.count);
    }
    i = __shfl_sync(kAllLanes, next, 0);
  }
  barrier_wait(shared.outer_empty(outer.at), outer.empty_parity());
  if (lane != 0) return;
  shared.outer_info(outer.at).count = 0;
  hopper::barrier_arrive_expecting(shared.outer_full(outer.at), 0);
  if (atomicAdd(p.counters + 1, 1) == blocks - 1) p.counters[0] = p.counters[1] = 0;
}

__device__ __forceinline__ Numbers key_biases(const AttentionArgs& a, const Item& item) {
  return {a.key_bias + item.batch * a.key_bias_batch, 0, 0, a.key_bias != nullptr};
}
// Where a head's first query has its lse and stats.
__device__ __forceinline__ int64_t first_query(const AttentionArgs& a, int batch, int head) {
  return (batch * a.heads + head) * a.queries;
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
  int group, row, column;  // row within the tile
};
__device__ __forceinline__ Place place_of_thread() {
  const int thread = static_cast<int>(threadIdx.x) - hopper::kWarpgroup;
  const int lane = thread % kWarp;
  const int group = uniform(thread / hopper::kWarpgroup);
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

// The same as f32 numbers.
template <int kHead>
__device__ __forceinline__ void store_rows(const float (&d)[kHead / 2], float* first,
                                           int64_t stride, const Place& at, int count, int width) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = at.row + 8 * half;
    if (row >= count) continue;
#pragma unroll
    for (int j = 0; j < kHead / 8; ++j) {
      const int column = 8 * j + at.column, e = 4 * j + 2 * half;
      if (column >= width) continue;
      *reinterpret_cast<float2*>(first + row * stride + column) = {d[e], d[e + 1]};
    }
  }
}

#endif  // WAM_HOPPER

template <typename L, typename Kernel>
void launch(Kernel kernel, const Problem& p, const char* name, cudaStream_t stream) {
  if (p.items == 0) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, L::kBytes), name);
  kernel<<<static_cast<unsigned>(std::min(p.items, multiprocessors())), L::kThreads,
           static_cast<size_t>(L::kBytes), stream>>>(p);
  check_launch(name);
}

// f.template operator()<kHead, kBias>().
template <typename F>
void dispatch(int64_t d, bool bias, const F& f) {
  if (d <= 64) {
    bias ? f.template operator()<64, true>() : f.template operator()<64, false>();
  } else {
    bias ? f.template operator()<128, true>() : f.template operator()<128, false>();
  }
}

}  // namespace wam::cuda::attention
