// A block walks over rows of one part; each thread owns eight columns, so that the weight and the
// weight's gradient stay in registers. Statistics in f32. Bytes moved: each normalised part read
// and written once; copied parts not at all when done in place.
#include "wam/kernels/cuda/qk_rows.h"
#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kMostThreads = 1024;

// Rotates the pairs of a thread's columns; `at` is each pair's place in a token's table row.
struct PairPlaces {
  int64_t at[4];
};
__device__ __forceinline__ PairPlaces pair_places(int64_t column, int64_t head_dim) {
  PairPlaces p;
#pragma unroll
  for (int i = 0; i < 4; ++i) p.at[i] = (column + 2 * i) % head_dim;
  return p;
}
template <bool kInverse>
__device__ __forceinline__ void rotate(const float* token_table, const PairPlaces& places,
                                       int64_t column, int64_t width, float (&v)[8]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (column + 2 * i >= width) continue;
    const float2 turn = *reinterpret_cast<const float2*>(token_table + places.at[i]);
    const float sine = kInverse ? -turn.y : turn.y;
    const float even = v[2 * i], odd = v[2 * i + 1];
    v[2 * i] = even * turn.x - odd * sine;
    v[2 * i + 1] = even * sine + odd * turn.x;
  }
}

template <typename T, bool kVector>
__device__ void copy_part(const QkRows& a, const T* from, T* to, int64_t first, int64_t last,
                          int64_t offset, int64_t column) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * a.parts * a.width + offset;
    float v[8];
    load8<T, kVector>(from + at, column, a.width, v);
    store8<T, kVector>(to + at, column, a.width, v);
  }
}

template <typename T, bool kVector>
__global__ void __launch_bounds__(kMostThreads)
    qk_rows_forward_kernel(QkRows a, const T* x, T* y, int64_t rows_per_block) {
  __shared__ BlockSums<1> sums;
  const int64_t part = blockIdx.y, column = int64_t{threadIdx.x} * 8, offset = part * a.width;
  const int64_t first = blockIdx.x * rows_per_block, last = min(a.rows, first + rows_per_block);
  if (part >= a.normed) return copy_part<T, kVector>(a, x, y, first, last, offset, column);
  float w[8];
  load8<T, kVector>(static_cast<const T*>(a.weights[part]), column, a.width, w);
  const int64_t head_dim = a.width / a.heads;
  const PairPlaces places = pair_places(column, head_dim);
  const float inverse = 1.0f / static_cast<float>(a.width);
  Pack<T> next = load8<T, kVector>(x + first * a.parts * a.width + offset, column, a.width);
  int slot = 0;
  for (int64_t row = first; row < last; ++row) {
    const Pack<T> pack = next;
    const int64_t at = row * a.parts * a.width + offset;
    if (row + 1 < last) next = load8<T, kVector>(x + at + a.parts * a.width, column, a.width);
    float v[8], sum[1] = {0};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[i] = wide(pack.v[i]);
      sum[0] += v[i] * v[i];
    }
    block_sum(sums, slot, sum);
    slot ^= 1;
    const float rstd = 1.0f / sqrtf(sum[0] * inverse + a.eps);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = (v[i] * rstd) * w[i];
    if (a.table != nullptr) {
      rotate<false>(a.table + row % a.length * head_dim, places, column, a.width, v);
    }
    store8<T, kVector>(y + at, column, a.width, v);
  }
}

template <typename T, bool kVector, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks)
    qk_rows_backward_kernel(QkRows a, const T* dy, const T* x, T* dx, int64_t rows_per_block,
                            float* partials) {
  __shared__ BlockSums<2> sums;
  const int64_t part = blockIdx.y, column = int64_t{threadIdx.x} * 8, offset = part * a.width;
  const int64_t first = blockIdx.x * rows_per_block, last = min(a.rows, first + rows_per_block);
  if (part >= a.normed) return copy_part<T, kVector>(a, dy, dx, first, last, offset, column);
  float w[8], dw[8] = {};
  load8<T, kVector>(static_cast<const T*>(a.weights[part]), column, a.width, w);
  const int64_t head_dim = a.width / a.heads;
  const PairPlaces places = pair_places(column, head_dim);
  const float inverse = 1.0f / static_cast<float>(a.width);
  Pack<T> next_dy{}, next_x{};
  const auto fetch = [&](int64_t row) {
    const int64_t at = row * a.parts * a.width + offset;
    next_dy = load8<T, kVector>(dy + at, column, a.width);
    next_x = load8<T, kVector>(x + at, column, a.width);
  };
  fetch(first);
  int slot = 0;
  for (int64_t row = first; row < last; ++row) {
    const Pack<T> pack_dy = next_dy, pack_x = next_x;
    if (row + 1 < last) fetch(row + 1);
    float g[8], v[8], sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      g[i] = wide(pack_dy.v[i]);
      v[i] = wide(pack_x.v[i]);
    }
    if (a.table != nullptr) {
      rotate<true>(a.table + row % a.length * head_dim, places, column, a.width, g);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sum[0] += v[i] * v[i];
      sum[1] += (g[i] * w[i]) * v[i];
    }
    block_sum(sums, slot, sum);
    slot ^= 1;
    const float rstd = 1.0f / sqrtf(sum[0] * inverse + a.eps);
    const float mean = sum[1] * rstd * inverse;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float z = v[i] * rstd;
      dw[i] += g[i] * z;
      g[i] = (g[i] * w[i] - z * mean) * rstd;
    }
    store8<T, kVector>(dx + row * a.parts * a.width + offset, column, a.width, g);
  }
  store8<float, kVector>(partials + (part * gridDim.x + blockIdx.x) * a.width, column, a.width, dw);
}

template <typename T>
__global__ void rope_kernel(const T* x, const float* table, int64_t pairs, int64_t length,
                            int64_t width, int64_t head_dim, bool inverse, T* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < pairs; i += step) {
    const int64_t element = 2 * i, row = element / width;
    const float* turn = table + row % length * head_dim + element % width % head_dim;
    const float sine = inverse ? -turn[1] : turn[1];
    const float even = wide(x[element]), odd = wide(x[element + 1]);
    y[element] = narrow<T>(even * turn[0] - odd * sine);
    y[element + 1] = narrow<T>(even * sine + odd * turn[0]);
  }
}

unsigned threads_for(int64_t width) {
  WAM_CHECK(width <= 8 * kMostThreads) << "rows of " << width << " elements; at most 8192";
  return static_cast<unsigned>(std::max<int64_t>(kWarp, round_up(ceil_div(width, 8), kWarp)));
}

bool can_vectorise(const QkRows& a, std::initializer_list<const void*> pointers) {
  bool ok = a.width % 8 == 0;
  for (int64_t i = 0; i < a.normed; ++i) ok = ok && aligned16(a.weights[i]);
  return ok && std::ranges::all_of(pointers, aligned16);
}

}  // namespace

void launch_qk_rows_forward(DType dtype, const QkRows& a, const void* x, void* y,
                            cudaStream_t stream) {
  if (a.rows == 0 || a.width == 0) return;
  const int64_t per_block = std::clamp<int64_t>(a.rows * a.normed / 800, 1, 8);
  const int64_t parts = x == y ? a.normed : a.parts;
  const dim3 grid(static_cast<unsigned>(ceil_div(a.rows, per_block)), static_cast<unsigned>(parts));
  const unsigned threads = threads_for(a.width);
  dispatch_float(dtype, [&]<typename T>() {
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (can_vectorise(a, {x, y})) {
      qk_rows_forward_kernel<T, true><<<grid, threads, 0, stream>>>(a, from, to, per_block);
    } else {
      qk_rows_forward_kernel<T, false><<<grid, threads, 0, stream>>>(a, from, to, per_block);
    }
  });
  check_launch("qk_rows_forward");
}

void launch_qk_rows_backward(DType dtype, const QkRows& a, const QkRowsGrad& g,
                             cudaStream_t stream) {
  if (a.width == 0) return;
  const int64_t chunk = qk_rows_chunk(a.rows, a.normed), blocks = ceil_div(a.rows, chunk);
  auto* partials = static_cast<float*>(g.workspace);
  if (a.rows > 0) {
    const int64_t parts = g.dy == g.dx ? a.normed : a.parts;
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(parts));
    const unsigned threads = threads_for(a.width);
    dispatch_float(dtype, [&]<typename T>() {
      const T *dy = static_cast<const T*>(g.dy), *x = static_cast<const T*>(g.x);
      T* dx = static_cast<T*>(g.dx);
      if (!can_vectorise(a, {g.dy, g.x, g.dx})) {
        qk_rows_backward_kernel<T, false, kMostThreads, 1>
            <<<grid, threads, 0, stream>>>(a, dy, x, dx, chunk, partials);
      } else if (threads <= 384) {
        qk_rows_backward_kernel<T, true, 384, 2>
            <<<grid, threads, 0, stream>>>(a, dy, x, dx, chunk, partials);
      } else {
        qk_rows_backward_kernel<T, true, kMostThreads, 1>
            <<<grid, threads, 0, stream>>>(a, dy, x, dx, chunk, partials);
      }
    });
    check_launch("qk_rows_backward");
  }
  for (int64_t part = 0; part < a.normed; ++part) {
    launch_segment_sums({.partials = partials + part * blocks * a.width,
                         .columns = a.width,
                         .row_stride = a.width,
                         .rows = blocks,
                         .out = g.dweights[part]},
                        stream);
  }
}

void launch_rope(DType dtype, const void* x, const float* table, int64_t rows, int64_t length,
                 int64_t width, int64_t heads, bool inverse, void* y, cudaStream_t stream) {
  const int64_t pairs = rows * width / 2;
  if (pairs == 0) return;
  dispatch_float(dtype, [&]<typename T>() {
    rope_kernel<<<grid_for(pairs, 256), 256, 0, stream>>>(static_cast<const T*>(x), table, pairs,
                                                          length, width, width / heads, inverse,
                                                          static_cast<T*>(y));
  });
  check_launch("rope");
}

}  // namespace wam::cuda
