// Blocks share the tokens evenly; each thread owns eight columns, so that table rows and sums stay
// with it while the token's row changes (row_ring.cuh). Statistics in f32: the mean first, then the
// squares around it. Bytes moved: each present tensor once, table rows once a block and run. Sums
// over tokens: a block adds up its tokens of one table row in ascending order, then the parts are
// added in order of the blocks.
#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/row_ring.cuh"
#include "wam/kernels/cuda/token_norm.h"

namespace wam::cuda {
namespace {

// ---- forward ----

// What a block is to do, for any width and any parts: one thread eight columns, straight loads.
template <typename T, bool kVector>
__global__ void __launch_bounds__(kMostRowThreads) plain_forward_kernel(TokenNormForward a) {
  __shared__ BlockSums<1> sums;
  const int64_t d = a.sizes.width, column = int64_t{threadIdx.x} * 8,
                tokens = a.sizes.batch * a.sizes.length;
  const T *x = static_cast<const T*>(a.x), *o = static_cast<const T*>(a.o);
  const float inverse = 1.0f / static_cast<float>(d);
  float gate[8], up[8], by[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    gate[i] = 1;
    up[i] = 1;
    by[i] = 0;
  }
  if (a.weight != nullptr) {
    load8<T, kVector>(static_cast<const T*>(a.weight), column, d, up);
    load8<T, kVector>(static_cast<const T*>(a.bias), column, d, by);
  }
  int64_t current = -1;
  int slot = 0;
  const int64_t last = share_begin(blockIdx.x + 1, gridDim.x, tokens);
  for (int64_t token = share_begin(blockIdx.x, gridDim.x, tokens); token < last; ++token) {
    const int64_t b = token / a.sizes.length, l = token - b * a.sizes.length;
    const int64_t table = b * a.sizes.num_rows + (a.index == nullptr ? 0 : a.index[l]);
    if (table != current) {
      current = table;
      if (a.gate != nullptr) load8<float, kVector>(a.gate + table * d, column, d, gate);
      if (a.scale != nullptr) {
        load8<float, kVector>(a.scale + table * d, column, d, up);
        load8<float, kVector>(a.shift + table * d, column, d, by);
#pragma unroll
        for (int i = 0; i < 8; ++i) up[i] += 1.0f;
      }
    }
    float v[8] = {}, more[8];
    if (x != nullptr) load8<T, kVector>(x + token * d, column, d, v);
    if (o != nullptr) {
      load8<T, kVector>(o + token * d, column, d, more);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] += more[i] * gate[i];
    }
    if (a.x_out != nullptr) {
      store8<T, kVector>(static_cast<T*>(a.x_out) + token * d, column, d, v);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] = rounded<T>(v[i]);
    }
    if (a.h == nullptr && a.stats == nullptr) continue;
    if (a.normalize) {
      float sum[1] = {sum8(v)};  // columns beyond the width are zero
      block_sum(sums, slot, sum);
      slot ^= 1;
      const float mean = sum[0] * inverse;
      sum[0] = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        v[i] -= mean;
        if (column + i < d) sum[0] += v[i] * v[i];
      }
      block_sum(sums, slot, sum);
      slot ^= 1;
      const float rstd = 1.0f / sqrtf(sum[0] * inverse + a.eps);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] *= rstd;
      if (a.stats != nullptr && threadIdx.x == 0) {
        *reinterpret_cast<float2*>(a.stats + token * 2) = float2{mean, rstd};
      }
    }
    if (a.h == nullptr) continue;
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = v[i] * up[i] + by[i];
    store8<T, kVector>(static_cast<T*>(a.h) + token * d, column, d, v);
  }
}

template <typename T, int kThreads, int kBlocks>
using ForwardRing = RowRing<T, 2, ring_stages<T, kThreads, kBlocks>(2, 4096)>;

// The same for seams with a norm, in rows of a multiple of eight.
template <typename T, int kThreads, int kBlocks, bool kResidual>
__global__ void __launch_bounds__(kThreads, kBlocks)
    norm_forward_kernel(const __grid_constant__ TokenNormForward a) {
  using Ring = ForwardRing<T, kThreads, kBlocks>;
  extern __shared__ uint4 shared[];
  __shared__ alignas(16) float sums_memory[BlockTotals<kThreads / kWarp, 1>::kFloats];
  BlockTotals<kThreads / kWarp, 1> sums(sums_memory);
  const int d = static_cast<int>(a.sizes.width), column = static_cast<int>(threadIdx.x) * 8;
  const bool active = column < d;
  const int64_t tokens = a.sizes.batch * a.sizes.length;
  const int64_t begin = share_begin(blockIdx.x, gridDim.x, tokens);
  const int count = static_cast<int>(share_begin(blockIdx.x + 1, gridDim.x, tokens) - begin);
  Ring ring(shared, active);
  auto* const rows = reinterpret_cast<int32_t*>(reinterpret_cast<char*>(shared) +
                                                Ring::bytes(static_cast<int>(blockDim.x)));
  const int64_t start = begin * d + column;
  const T *x = static_cast<const T*>(a.x) + start,
          *o = kResidual ? static_cast<const T*>(a.o) + start : nullptr;
  int ahead = active ? count : 0;  // rows still to be fetched
  const auto fetch = [&] {
    if (ahead > 0) {
      ring.fetch(0, x);
      x += d;
      if constexpr (kResidual) {
        ring.fetch(1, o);
        o += d;
      }
      --ahead;
    }
    ring.commit();
  };
#pragma unroll
  for (int k = 0; k < Ring::kAhead; ++k) fetch();
  for (int k = static_cast<int>(threadIdx.x); k < count; k += static_cast<int>(blockDim.x)) {
    const int64_t b = (begin + k) / a.sizes.length, l = begin + k - b * a.sizes.length;
    rows[k] = static_cast<int32_t>(b * a.sizes.num_rows + (a.index == nullptr ? 0 : a.index[l]));
  }
  const float inverse = 1.0f / static_cast<float>(d);
  float gate[8], up[8], by[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    gate[i] = 1;
    up[i] = 1;
    by[i] = 0;
  }
  if (a.weight != nullptr && active) {
    unpack(load_piece(static_cast<const T*>(a.weight) + column), up);
    unpack(load_piece(static_cast<const T*>(a.bias) + column), by);
  }
  T* x_out = kResidual ? static_cast<T*>(a.x_out) + start : nullptr;
  T* h = static_cast<T*>(a.h) + start;
  __syncthreads();
  int current = -1;
  for (int k = 0; k < count; ++k) {
    if (rows[k] != current) {
      current = rows[k];
      const int64_t at = int64_t{current} * d + column;
      if (a.gate != nullptr && active) unpack(load_piece(a.gate + at), gate);
      if (a.scale != nullptr && active) {
        unpack(load_piece(a.scale + at), up);
        unpack(load_piece(a.shift + at), by);
#pragma unroll
        for (int i = 0; i < 8; ++i) up[i] += 1.0f;
      }
    }
    ring.wait();
    float v[8];
    ring.take(0, v);
    if constexpr (kResidual) {
      float more[8];
      ring.take(1, more);
      fetch();
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] += more[i] * gate[i];
      const Piece<T> piece = pack<T>(v);
      if (active) store_piece(x_out, piece);
      x_out += d;
      unpack(piece, v);
    } else {
      fetch();
    }
    float sum[1] = {sum8(v)};  // columns beyond the width are zero
    sums.sum(0, sum);
    const float mean = sum[0] * inverse;
    float squares[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[i] -= mean;
      squares[i] = v[i] * v[i];
    }
    sum[0] = active ? sum8(squares) : 0.0f;
    sums.sum(1, sum);
    const float rstd = rsqrtf(sum[0] * inverse + a.eps);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = (v[i] * rstd) * up[i] + by[i];
    if (active) store_piece(h, pack<T>(v));
    h += d;
    if (threadIdx.x == 0) {
      *reinterpret_cast<float2*>(a.stats + (begin + k) * 2) = float2{mean, rstd};
    }
  }
}

// ---- tokens by table row: what a block sums is then a run ----

// perm [length]: tokens sorted by table row, stable; row [length]: their table rows; first [rows +
// 1]: where each table row's tokens begin.
struct Schedule {
  const int32_t *perm = nullptr, *row = nullptr, *first = nullptr;
};

constexpr int kScheduleWarps = 32;

// One block; each warp takes a run of tokens and counts them by table row, then knows where its
// tokens of each row go.
__global__ void __launch_bounds__(kScheduleWarps* kWarp)
    token_schedule_kernel(const int32_t* __restrict__ index, int length, int rows,
                          int32_t* __restrict__ perm, int32_t* __restrict__ row,
                          int32_t* __restrict__ first) {
  extern __shared__ int32_t places[];  // [rows, warps]
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  const int count = rows * kScheduleWarps;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    places[i] = 0;
  }
  __syncthreads();
  const int run = (length + kScheduleWarps * kWarp - 1) / (kScheduleWarps * kWarp) * kWarp;
  const int begin = warp * run, end = min(length, begin + run);
  // Visits a warp's tokens in order: visit(token, its row, how many of its row came just before).
  const auto each = [&](const auto& visit) {
    for (int l = begin + lane; l - lane < end; l += kWarp) {
      const int t = l < end ? index[l] : -1;
      const unsigned same = __match_any_sync(kAllLanes, t);
      const int before = __popc(same & ((1u << lane) - 1u));
      if (t >= 0) visit(l, t, before);
      __syncwarp();
      if (t >= 0 && before == 0) places[t * kScheduleWarps + warp] += __popc(same);
      __syncwarp();
    }
  };
  each([](int, int, int) {});
  __syncthreads();
  if (warp == 0) {  // counts become places
    int total = 0;
    for (int t = 0; t < rows; ++t) {
      const int mine = places[t * kScheduleWarps + lane];
      int sum = mine;
#pragma unroll
      for (int step = 1; step < kWarp; step *= 2) {
        const int other = __shfl_up_sync(kAllLanes, sum, step);
        if (lane >= step) sum += other;
      }
      places[t * kScheduleWarps + lane] = total + sum - mine;
      if (lane == 0) first[t] = total;
      total += __shfl_sync(kAllLanes, sum, kWarp - 1);
    }
    if (lane == 0) first[rows] = total;
  }
  __syncthreads();
  each([&](int l, int t, int before) {
    const int place = places[t * kScheduleWarps + warp] + before;
    perm[place] = l;
    row[place] = t;
  });
}

// ---- backward ----

// Where sums are kept, -1 where absent: those of a table row among `segmented` rows of a part,
// those over all tokens among `whole` rows of a block.
struct PartPlaces {
  int segmented = 0, whole = 0;
  int gate = -1, scale = -1, shift = -1, weight = -1, bias = -1, column = -1;
};

struct BackwardLaunch {
  TokenNormBackward args;
  Schedule schedule;
  PartPlaces places;
  float *segmented = nullptr, *whole = nullptr;
};

// Writes a block's parts of the sums of table row `row`, which end here.
template <bool kVector>
__device__ __forceinline__ void store_parts(const BackwardLaunch& p, int64_t row, int64_t column,
                                            const float (&dgate)[8], const float (&dscale)[8],
                                            const float (&dshift)[8]) {
  const int64_t d = p.args.sizes.width;
  float* at = p.segmented + (blockIdx.x + row) * p.places.segmented * d;
  if (p.places.gate >= 0) store8<float, kVector>(at + p.places.gate * d, column, d, dgate);
  if (p.places.scale >= 0) store8<float, kVector>(at + p.places.scale * d, column, d, dscale);
  if (p.places.shift >= 0) store8<float, kVector>(at + p.places.shift * d, column, d, dshift);
}
// Those of the sums over all tokens.
template <bool kVector>
__device__ __forceinline__ void store_whole(const BackwardLaunch& p, int64_t column,
                                            const float (&dweight)[8], const float (&dbias)[8],
                                            const float (&dcolumn)[8]) {
  const int64_t d = p.args.sizes.width;
  float* at = p.whole + int64_t{blockIdx.x} * p.places.whole * d;
  if (p.places.weight >= 0) store8<float, kVector>(at + p.places.weight * d, column, d, dweight);
  if (p.places.bias >= 0) store8<float, kVector>(at + p.places.bias * d, column, d, dbias);
  if (p.places.column >= 0) store8<float, kVector>(at + p.places.column * d, column, d, dcolumn);
}

template <typename T, bool kVector>
__global__ void __launch_bounds__(kMostRowThreads)
    plain_backward_kernel(const __grid_constant__ BackwardLaunch p) {
  __shared__ BlockSums<2> sums;
  const TokenNormBackward& a = p.args;
  const int64_t d = a.sizes.width, column = int64_t{threadIdx.x} * 8,
                tokens = a.sizes.batch * a.sizes.length;
  const T *dh = static_cast<const T*>(a.dh), *dx_out = static_cast<const T*>(a.dx_out);
  const T *x = static_cast<const T*>(a.x), *o = static_cast<const T*>(a.o);
  const float inverse = 1.0f / static_cast<float>(d);
  float dgate[8] = {}, dscale[8] = {}, dshift[8] = {}, dcolumn[8] = {};
  int64_t current = -1;
  int slot = 0;
  const int64_t last = share_begin(blockIdx.x + 1, gridDim.x, tokens);
  for (int64_t i = share_begin(blockIdx.x, gridDim.x, tokens); i < last; ++i) {
    const int64_t b = i / a.sizes.length, at = i - b * a.sizes.length;
    const bool sorted = p.schedule.perm != nullptr;
    const int64_t token = b * a.sizes.length + (sorted ? p.schedule.perm[at] : at);
    const int64_t table = b * a.sizes.num_rows + (sorted ? p.schedule.row[at] : 0), row = token * d;
    if (table != current) {
      if (p.places.segmented > 0 && current >= 0) {
        store_parts<kVector>(p, current, column, dgate, dscale, dshift);
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          dgate[c] = 0;
          if (p.places.scale >= 0) dscale[c] = dshift[c] = 0;
        }
      }
      current = table;
    }
    float dx[8] = {}, v[8];
    if (dh != nullptr) {
      const float mean = a.normalize ? a.stats[token * 2] : 0.0f;
      const float rstd = a.normalize ? a.stats[token * 2 + 1] : 1.0f;
      float n[8], up[8], sum[2] = {0, 0};
      load8<T, kVector>(dh + row, column, d, v);
      load8<T, kVector>(x + row, column, d, n);
      if (a.scale != nullptr) {
        load8<float, kVector>(a.scale + table * d, column, d, up);
      } else if (a.weight != nullptr) {
        load8<T, kVector>(static_cast<const T*>(a.weight), column, d, up);
      }
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        n[c] = (n[c] - mean) * rstd;
        dshift[c] += v[c];
        dscale[c] += v[c] * n[c];
        dx[c] = a.scale != nullptr    ? v[c] * (up[c] + 1.0f)
                : a.weight != nullptr ? v[c] * up[c]
                                      : v[c];
        sum[0] += dx[c];
        sum[1] += dx[c] * n[c];  // dh is zero beyond the width
      }
      if (a.normalize) {
        block_sum(sums, slot, sum);
        slot ^= 1;
        const float mean_g = sum[0] * inverse, mean_gn = sum[1] * inverse;
#pragma unroll
        for (int c = 0; c < 8; ++c) dx[c] = (dx[c] - mean_g - n[c] * mean_gn) * rstd;
      }
    }
    if (dx_out != nullptr) {
      load8<T, kVector>(dx_out + row, column, d, v);
#pragma unroll
      for (int c = 0; c < 8; ++c) dx[c] += v[c];
    }
    if (a.dx != nullptr) store8<T, kVector>(static_cast<T*>(a.dx) + row, column, d, dx);
    if (o != nullptr) {
      float gate[8];
      load8<T, kVector>(o + row, column, d, v);
      load8<float, kVector>(a.gate + table * d, column, d, gate);
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        dgate[c] += dx[c] * v[c];
        dx[c] *= gate[c];
      }
      store8<T, kVector>(static_cast<T*>(a.d_o) + row, column, d, dx);
    }
#pragma unroll
    for (int c = 0; c < 8; ++c) dcolumn[c] += dx[c];
  }
  if (p.places.segmented > 0 && current >= 0) {
    store_parts<kVector>(p, current, column, dgate, dscale, dshift);
  }
  store_whole<kVector>(p, column, dscale, dshift, dcolumn);
}

// A token to work on: its place, its row of all samples' table rows, its statistics.
struct alignas(16) Work {
  int32_t token, row;
  float mean, rstd;
};

// Table rows lie beside the ring: two pieces of 32 bytes a thread; then the list of tokens.
template <typename T, int kThreads, int kBlocks>
using BackwardRing =
    RowRing<T, 4, ring_stages<T, kThreads, kBlocks>(4, kThreads * 64 + 256 * sizeof(Work))>;

// Eight numbers of each thread, in shared memory.
__device__ __forceinline__ void keep8(float4* at, const float (&v)[8]) {
  at[threadIdx.x] = {v[0], v[1], v[2], v[3]};
  at[threadIdx.x + blockDim.x] = {v[4], v[5], v[6], v[7]};
}
__device__ __forceinline__ void recall8(const float4* at, float (&v)[8]) {
  const float4 low = at[threadIdx.x], high = at[threadIdx.x + blockDim.x];
  v[0] = low.x;
  v[1] = low.y;
  v[2] = low.z;
  v[3] = low.w;
  v[4] = high.x;
  v[5] = high.y;
  v[6] = high.z;
  v[7] = high.w;
}

// For seams with a norm, in rows of a multiple of eight. A row is looked at twice, before and after
// the block's sums, rather than kept in registers; the ring holds two rows or more.
template <typename T, int kThreads, int kBlocks, bool kGate>
__global__ void __launch_bounds__(kThreads, kBlocks)
    norm_backward_kernel(const __grid_constant__ BackwardLaunch p) {
  using Ring = BackwardRing<T, kThreads, kBlocks>;
  extern __shared__ uint4 shared[];
  __shared__ alignas(16) float sums_memory[BlockTotals<kThreads / kWarp, 2>::kFloats];
  BlockTotals<kThreads / kWarp, 2> sums(sums_memory);
  const TokenNormBackward& a = p.args;
  const int d = static_cast<int>(a.sizes.width), column = static_cast<int>(threadIdx.x) * 8;
  const bool active = column < d;
  const int64_t tokens = a.sizes.batch * a.sizes.length;
  const int64_t begin = share_begin(blockIdx.x, gridDim.x, tokens);
  const int count = static_cast<int>(share_begin(blockIdx.x + 1, gridDim.x, tokens) - begin);
  Ring ring(shared, active);
  auto* const ups = reinterpret_cast<float4*>(reinterpret_cast<char*>(shared) +
                                              Ring::bytes(static_cast<int>(blockDim.x)));
  float4* const gates = ups + 2 * blockDim.x;
  auto* const work = reinterpret_cast<Work*>(gates + 2 * blockDim.x);
  for (int k = static_cast<int>(threadIdx.x); k < count; k += static_cast<int>(blockDim.x)) {
    const int64_t b = (begin + k) / a.sizes.length, at = begin + k - b * a.sizes.length;
    const bool sorted = p.schedule.perm != nullptr;
    const int64_t token = b * a.sizes.length + (sorted ? p.schedule.perm[at] : at);
    const auto row = static_cast<int32_t>(b * a.sizes.num_rows + (sorted ? p.schedule.row[at] : 0));
    const float2 stats = *reinterpret_cast<const float2*>(a.stats + token * 2);
    work[k] = {static_cast<int32_t>(token), row, stats.x, stats.y};
  }
  __syncthreads();
  const T *dh = static_cast<const T*>(a.dh) + column, *x = static_cast<const T*>(a.x) + column;
  const bool direct = a.dx_out != nullptr;
  const T* dx_out = static_cast<const T*>(a.dx_out) + (direct ? column : 0);
  const T* o = kGate ? static_cast<const T*>(a.o) + column : nullptr;
  int next = active ? 0 : count;  // to be fetched
  const auto fetch = [&] {
    if (next < count) {
      const int64_t at = int64_t{work[next++].token} * d;
      ring.fetch(0, dh + at);
      if (direct) ring.fetch(1, dx_out + at);
      ring.fetch(2, x + at);
      if constexpr (kGate) ring.fetch(3, o + at);
    }
    ring.commit();
  };
#pragma unroll
  for (int k = 0; k < Ring::kAhead; ++k) fetch();
  const float inverse = 1.0f / static_cast<float>(d);
  float dgate[8] = {}, dscale[8] = {}, dshift[8] = {}, dcolumn[8] = {};
  {
    float up[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (a.weight != nullptr && active) {
      unpack(load_piece(static_cast<const T*>(a.weight) + column), up);
    }
    keep8(ups, up);
  }
  int current = -1;
  // To the table row of token k, whose tokens begin here.
  const auto turn_to = [&](int row) {
    if (p.places.segmented > 0 && current >= 0) {
      store_parts<true>(p, current, column, dgate, dscale, dshift);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        dgate[i] = 0;
        if (p.places.scale >= 0) dscale[i] = dshift[i] = 0;
      }
    }
    current = row;
    const int64_t table = int64_t{current} * d + column;
    float v[8] = {};
    if constexpr (kGate) {
      if (active) unpack(load_piece(a.gate + table), v);
      keep8(gates, v);
    }
    if (a.scale != nullptr) {
      if (active) unpack(load_piece(a.scale + table), v);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] += 1.0f;
      keep8(ups, v);
    }
  };
  // First look at token k, the ring's present or next row: what needs no sum over the row, and the
  // warps' sums.
  const auto begin_token = [&](int k, bool is_next) {
    const Work item = work[k];
    float g[8], n[8], up[8], products[8], sum[2];
    ring.template wait<1>();
    if (is_next) {
      ring.take_next(0, g);
      ring.take_next(2, n);
    } else {
      ring.take(0, g);
      ring.take(2, n);
    }
    recall8(ups, up);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      n[i] = (n[i] - item.mean) * item.rstd;
      dshift[i] += g[i];
      dscale[i] += g[i] * n[i];
      up[i] *= g[i];  // dh is zero beyond the width
      products[i] = up[i] * n[i];
    }
    sum[0] = sum8(up);
    sum[1] = sum8(products);
    sums.put(k & 1, sum);
  };
  const auto finish_token = [&](int k) {
    const Work item = work[k];
    float dx[8], v[8], sum[2];
    sums.get(k & 1, sum);
    const float mean_g = sum[0] * inverse, mean_gn = sum[1] * inverse;
    recall8(ups, dx);
    ring.take(0, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) dx[i] *= v[i];
    ring.take(2, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      dx[i] = (dx[i] - mean_g - (v[i] - item.mean) * item.rstd * mean_gn) * item.rstd;
    }
    if (direct) {
      ring.take(1, v);
#pragma unroll
      for (int i = 0; i < 8; ++i) dx[i] += v[i];
    }
    const int64_t at = int64_t{item.token} * d + column;
    if (active) store_piece(static_cast<T*>(a.dx) + at, pack<T>(dx));
    if constexpr (kGate) {
      ring.take(3, v);
#pragma unroll
      for (int i = 0; i < 8; ++i) dgate[i] += dx[i] * v[i];
      recall8(gates, v);
#pragma unroll
      for (int i = 0; i < 8; ++i) dx[i] *= v[i];
      if (active) store_piece(static_cast<T*>(a.d_o) + at, pack<T>(dx));
    }
    if (p.places.column >= 0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) dcolumn[i] += dx[i];
    }
    fetch();
  };
  if (count > 0) {
    turn_to(work[0].row);
    begin_token(0, false);
  }
  __syncthreads();
  for (int k = 0; k < count; ++k) {
    // The next token begins before this one ends, so that neither waits for its sums, unless the
    // table row changes between them.
    const int next_row = k + 1 < count ? work[k + 1].row : -1;
    if (next_row == current) {
      begin_token(k + 1, true);
      finish_token(k);
    } else {
      finish_token(k);
      if (next_row >= 0) {
        turn_to(next_row);
        begin_token(k + 1, false);
      }
    }
    __syncthreads();
  }
  if (p.places.segmented > 0 && current >= 0) {
    store_parts<true>(p, current, column, dgate, dscale, dshift);
  }
  store_whole<true>(p, column, dscale, dshift, dcolumn);
}

// ---- launchers ----

bool can_vectorise(int64_t width, std::initializer_list<const void*> pointers) {
  return width % 8 == 0 && std::ranges::all_of(pointers, aligned16);
}

// f.template operator()<T, kThreads, kBlocks>() for the smallest form of the norm kernels that
// fits; for wider rows of f32 shared memory has no room.
bool has_form(DType dtype, unsigned threads) { return dtype == DType::kBF16 || threads <= 640; }
template <typename F>
void dispatch_form(DType dtype, unsigned threads, const F& f) {
  dispatch_float(dtype, [&]<typename T>() {
    if (threads <= 384) {
      f.template operator()<T, 384, sizeof(T) == 2 ? 2 : 1>();
    } else if (threads <= 640) {
      f.template operator()<T, 640, 1>();
    } else if constexpr (sizeof(T) == 2) {
      f.template operator()<T, kMostRowThreads, 1>();
    }
  });
}

// Hands out pieces of the workspace.
class Scratch {
 public:
  explicit Scratch(void* begin) : at_(static_cast<std::byte*>(begin)) {}
  template <typename T>
  T* take(int64_t count) {
    std::byte* begin = at_;
    at_ += round_up(count * static_cast<int64_t>(sizeof(T)), 16);
    return reinterpret_cast<T*>(begin);
  }

 private:
  std::byte* at_;
};

Schedule make_schedule(const TokenNormBackward& a, Scratch& scratch, cudaStream_t stream) {
  const int64_t length = a.sizes.length, rows = a.sizes.num_rows;
  auto *perm = scratch.take<int32_t>(length), *row = scratch.take<int32_t>(length),
       *first = scratch.take<int32_t>(rows + 1);
  WAM_CHECK(rows <= 1500) << "table of " << rows << " rows; at most 1500";
  const int bytes = static_cast<int>(rows) * kScheduleWarps * 4;
  allow_shared(token_schedule_kernel, bytes);
  token_schedule_kernel<<<1, kScheduleWarps * kWarp, static_cast<size_t>(bytes), stream>>>(
      a.index, static_cast<int>(length), static_cast<int>(rows), perm, row, first);
  check_launch("token_schedule");
  return {perm, row, first};
}

void add_up(const BackwardLaunch& p, int64_t blocks, cudaStream_t stream) {
  const TokenNormBackward& a = p.args;
  const TokenSizes& z = a.sizes;
  PartSums sums{.columns = z.width, .rows = blocks, .batch = z.batch, .length = z.length};
  sums.table_rows = z.num_rows;
  sums.first = p.schedule.first;
  for (const auto& [place, out] :
       {std::pair{p.places.gate, a.dgate}, std::pair{p.places.scale, a.dscale},
        std::pair{p.places.shift, a.dshift}}) {
    if (place < 0) continue;
    sums.segmented[sums.num_segmented++] = {p.segmented + place * z.width,
                                            p.places.segmented * z.width, out};
  }
  for (const auto& [place, out] :
       {std::pair{p.places.weight, a.dweight}, std::pair{p.places.bias, a.dbias},
        std::pair{p.places.column, a.dcolumn}}) {
    if (place < 0) continue;
    sums.whole[sums.num_whole++] = {p.whole + place * z.width, p.places.whole * z.width, out};
  }
  launch_part_sums(sums, stream);
}

}  // namespace

void launch_token_norm_forward(DType dtype, const TokenNormForward& a, cudaStream_t stream) {
  const TokenSizes& z = a.sizes;
  if (z.tokens() == 0 || z.width == 0) return;
  const int64_t blocks = row_blocks(z.tokens(), z.width);
  const unsigned threads = row_threads(z.width), grid = static_cast<unsigned>(blocks);
  const bool vector =
      can_vectorise(z.width, {a.x, a.o, a.gate, a.scale, a.shift, a.weight, a.bias, a.x_out, a.h});
  const bool residual = a.o != nullptr;
  const bool norm = a.normalize && has_form(dtype, threads) && a.x != nullptr && a.h != nullptr &&
                    a.stats != nullptr && residual == (a.x_out != nullptr);
  if (vector && norm) {
    dispatch_form(dtype, threads, [&]<typename T, int kThreads, int kBlocks>() {
      const int bytes = ForwardRing<T, kThreads, kBlocks>::bytes(static_cast<int>(threads)) +
                        static_cast<int>(ceil_div(z.tokens(), blocks)) * 4;
      const auto kernel = residual ? norm_forward_kernel<T, kThreads, kBlocks, true>
                                   : norm_forward_kernel<T, kThreads, kBlocks, false>;
      allow_shared(kernel, bytes);
      kernel<<<grid, threads, static_cast<size_t>(bytes), stream>>>(a);
    });
  } else {
    dispatch_float(dtype, [&]<typename T>() {
      const auto kernel = vector ? plain_forward_kernel<T, true> : plain_forward_kernel<T, false>;
      kernel<<<grid, threads, 0, stream>>>(a);
    });
  }
  check_launch("token_norm_forward");
}

void launch_token_norm_backward(DType dtype, const TokenNormBackward& a, cudaStream_t stream) {
  const TokenSizes& z = a.sizes;
  if (z.width == 0 || z.batch == 0) return;
  WAM_CHECK(z.tokens() < (int64_t{1} << 31)) << z.tokens() << " tokens";
  BackwardLaunch p{.args = a};
  PartPlaces& at = p.places;
  if (a.dgate != nullptr) at.gate = at.segmented++;
  if (a.dscale != nullptr) at.scale = at.segmented++;
  if (a.dshift != nullptr) at.shift = at.segmented++;
  if (a.dweight != nullptr) at.weight = at.whole++;
  if (a.dbias != nullptr) at.bias = at.whole++;
  if (a.dcolumn != nullptr) at.column = at.whole++;
  WAM_CHECK(at.segmented == 0 || a.index != nullptr) << "sums by table row without an index";
  Scratch scratch(a.workspace);
  if (a.index != nullptr) p.schedule = make_schedule(a, scratch, stream);
  const int64_t blocks = row_blocks(z.tokens(), z.width);
  p.segmented = scratch.take<float>((blocks + z.batch * z.num_rows) * at.segmented * z.width);
  p.whole = scratch.take<float>(blocks * at.whole * z.width);
  const bool vector =
      can_vectorise(z.width, {a.dh, a.dx_out, a.x, a.o, a.gate, a.scale, a.weight, a.dx, a.d_o});
  const unsigned threads = row_threads(z.width), grid = static_cast<unsigned>(blocks);
  const bool norm = a.normalize && a.dh != nullptr && a.dx != nullptr;
  if (blocks > 0 && vector && norm && has_form(dtype, threads)) {
    dispatch_form(dtype, threads, [&]<typename T, int kThreads, int kBlocks>() {
      const int list = static_cast<int>(ceil_div(z.tokens(), blocks) * int64_t{sizeof(Work)});
      const int bytes = BackwardRing<T, kThreads, kBlocks>::bytes(static_cast<int>(threads)) +
                        static_cast<int>(threads) * 64 + list;
      const auto kernel = a.o != nullptr ? norm_backward_kernel<T, kThreads, kBlocks, true>
                                         : norm_backward_kernel<T, kThreads, kBlocks, false>;
      allow_shared(kernel, bytes);
      kernel<<<grid, threads, static_cast<size_t>(bytes), stream>>>(p);
    });
  } else if (blocks > 0) {
    dispatch_float(dtype, [&]<typename T>() {
      const auto kernel = vector ? plain_backward_kernel<T, true> : plain_backward_kernel<T, false>;
      kernel<<<grid, threads, 0, stream>>>(p);
    });
  }
  check_launch("token_norm_backward");
  add_up(p, blocks, stream);
}

}  // namespace wam::cuda
