// Blocks share the rows of each part evenly; each thread owns eight columns, so that the weight and
// the sums stay in registers (row_ring.cuh). Statistics in f32. Bytes moved: each normalised part
// read and written once; copied parts not at all when done in place, unless they are summed.
#include "wam/kernels/cuda/qk_rows.h"

#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/row_ring.cuh"

namespace wam::cuda {
namespace {

template <bool kInverse>
__device__ __forceinline__ void rotate(const float (&turns)[8], float (&v)[8]) {
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    const float cosine = turns[i], sine = kInverse ? -turns[i + 1] : turns[i + 1];
    const float even = v[i], odd = v[i + 1];
    v[i] = even * cosine - odd * sine;
    v[i + 1] = even * sine + odd * cosine;
  }
}

// Rows [first, last) of the block's part.
struct PartRows {
  int64_t first, last, offset;
};
__device__ __forceinline__ PartRows part_rows(const QkRows& a) {
  return {share_begin(blockIdx.x, gridDim.x, a.rows),
          share_begin(blockIdx.x + 1, gridDim.x, a.rows), blockIdx.y * a.width};
}

// The block's rows of the table, one after the other: cosine and sine of a thread's pairs.
template <bool kVector>
class TurnTable {
 public:
  __device__ TurnTable(const QkRows& a, int64_t first_row, int column)
      : head_dim_(static_cast<int>(a.width / a.heads)),
        left_(static_cast<int>(a.width) - column),
        column_(column % head_dim_),
        length_(static_cast<int>(a.length)),
        row_(static_cast<int>(first_row % a.length)),
        begin_(a.table + column_),
        at_(begin_ + int64_t{row_} * head_dim_) {}
  __device__ __forceinline__ void next(float (&turns)[8]) {
    if constexpr (kVector) {
      if (left_ > 0) unpack(load_piece(at_), turns);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        turns[i] = i < left_ ? at_[(column_ + i) % head_dim_ - column_] : 0.0f;
      }
    }
    ++row_;
    at_ += head_dim_;
    if (row_ == length_) {
      row_ = 0;
      at_ = begin_;
    }
  }

 private:
  int head_dim_, left_, column_, length_, row_;
  const float *begin_, *at_;
};

// ---- any width ----

template <typename T>
__global__ void __launch_bounds__(kMostRowThreads)
    plain_forward_kernel(const __grid_constant__ QkRows a, const T* x, T* y) {
  __shared__ BlockSums<1> sums;
  const int64_t column = int64_t{threadIdx.x} * 8, stride = a.parts * a.width;
  const PartRows rows = part_rows(a);
  float w[8];
  load8<T, false>(static_cast<const T*>(a.weights[blockIdx.y]), column, a.width, w);
  const float inverse = 1.0f / static_cast<float>(a.width);
  TurnTable<false> table(a, rows.first, static_cast<int>(column));
  int slot = 0;
  for (int64_t row = rows.first; row < rows.last; ++row) {
    const int64_t at = row * stride + rows.offset;
    float v[8], sum[1] = {0};
    load8<T, false>(x + at, column, a.width, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[0] += v[i] * v[i];
    block_sum(sums, slot, sum);
    slot ^= 1;
    const float rstd = 1.0f / sqrtf(sum[0] * inverse + a.eps);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = (v[i] * rstd) * w[i];
    if (a.table != nullptr) {
      float turns[8];
      table.next(turns);
      rotate<false>(turns, v);
    }
    store8<T, false>(y + at, column, a.width, v);
  }
}

template <typename T>
struct BackwardLaunch {
  QkRows rows;
  const T *dy, *dy2, *x;
  T* dx;
  float *weights, *columns;  // parts of sums [part, block, width]; columns may be null
};

// A part that is not normalised: copied, unless it lies in its place, and summed.
template <typename T, bool kVector>
__device__ void pass_part(const BackwardLaunch<T>& p, const PartRows& rows, int64_t column) {
  const QkRows& a = p.rows;
  const int64_t stride = a.parts * a.width;
  const bool copy = p.dy != p.dx || p.dy2 != nullptr;
  if (!copy && p.columns == nullptr) return;
  float sum[8] = {};
#pragma unroll 8
  for (int64_t row = rows.first; row < rows.last; ++row) {
    const int64_t at = row * stride + rows.offset;
    float v[8];
    load8<T, kVector>(p.dy + at, column, a.width, v);
    if (p.dy2 != nullptr) {
      float more[8];
      load8<T, kVector>(p.dy2 + at, column, a.width, more);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] += more[i];
    }
    if (copy) store8<T, kVector>(p.dx + at, column, a.width, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] += v[i];
  }
  if (p.columns == nullptr) return;
  store8<float, kVector>(p.columns + (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * a.width,
                         column, a.width, sum);
}

template <typename T>
__global__ void __launch_bounds__(kMostRowThreads)
    plain_backward_kernel(const __grid_constant__ BackwardLaunch<T> p) {
  __shared__ BlockSums<2> sums;
  const QkRows& a = p.rows;
  const int64_t column = int64_t{threadIdx.x} * 8, stride = a.parts * a.width;
  const PartRows rows = part_rows(a);
  if (blockIdx.y >= a.normed) return pass_part<T, false>(p, rows, column);
  float w[8], dw[8] = {}, dcolumn[8] = {};
  load8<T, false>(static_cast<const T*>(a.weights[blockIdx.y]), column, a.width, w);
  const float inverse = 1.0f / static_cast<float>(a.width);
  TurnTable<false> table(a, rows.first, static_cast<int>(column));
  int slot = 0;
  for (int64_t row = rows.first; row < rows.last; ++row) {
    const int64_t at = row * stride + rows.offset;
    float g[8], v[8], sum[2] = {0, 0};
    load8<T, false>(p.dy + at, column, a.width, g);
    if (p.dy2 != nullptr) {
      load8<T, false>(p.dy2 + at, column, a.width, v);
#pragma unroll
      for (int i = 0; i < 8; ++i) g[i] += v[i];
    }
    if (a.table != nullptr) {
      table.next(v);
      rotate<true>(v, g);
    }
    load8<T, false>(p.x + at, column, a.width, v);
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
      dcolumn[i] += g[i];
    }
    store8<T, false>(p.dx + at, column, a.width, g);
  }
  const int64_t mine = (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * a.width;
  store8<float, false>(p.weights + mine, column, a.width, dw);
  if (p.columns != nullptr) store8<float, false>(p.columns + mine, column, a.width, dcolumn);
}

// ---- rows of a multiple of eight ----

template <typename T, int kThreads, int kBlocks, int kTensors>
using QkRing = RowRing<T, kTensors, ring_stages<T, kThreads, kBlocks>(kTensors, 0)>;

template <typename T, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks)
    qk_rows_forward_kernel(const __grid_constant__ QkRows a, const T* x, T* y) {
  using Ring = QkRing<T, kThreads, kBlocks, 1>;
  extern __shared__ uint4 shared[];
  __shared__ alignas(16) float sums_memory[BlockTotals<kThreads / kWarp, 1>::kFloats];
  BlockTotals<kThreads / kWarp, 1> sums(sums_memory);
  const int column = static_cast<int>(threadIdx.x) * 8;
  const bool active = column < a.width;
  const PartRows rows = part_rows(a);
  const int64_t stride = a.parts * a.width, start = rows.first * stride + rows.offset + column;
  x += start;
  y += start;
  Ring ring(shared, active);
  const auto count = static_cast<int>(rows.last - rows.first);
  int ahead = active ? count : 0;
  const auto fetch = [&] {
    if (ahead > 0) {
      ring.fetch(0, x);
      x += stride;
      --ahead;
    }
    ring.commit();
  };
#pragma unroll
  for (int k = 0; k < Ring::kAhead; ++k) fetch();
  float w[8] = {}, turns[8] = {};
  if (active) unpack(load_piece(static_cast<const T*>(a.weights[blockIdx.y]) + column), w);
  const float inverse = 1.0f / static_cast<float>(a.width);
  TurnTable<true> table(a, rows.first, column);
  __syncthreads();
  for (int k = 0; k < count; ++k) {
    if (a.table != nullptr) table.next(turns);
    ring.wait();
    float v[8], squares[8];
    ring.take(0, v);
    fetch();
#pragma unroll
    for (int i = 0; i < 8; ++i) squares[i] = v[i] * v[i];
    float sum[1] = {sum8(squares)};
    sums.sum(k & 1, sum);
    const float rstd = rsqrtf(sum[0] * inverse + a.eps);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = (v[i] * rstd) * w[i];
    if (a.table != nullptr) rotate<false>(turns, v);
    if (active) store_piece(y, pack<T>(v));
    y += stride;
  }
}

// A row is looked at twice, before and after the block's sums, rather than kept in registers.
template <typename T, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks)
    qk_rows_backward_kernel(const __grid_constant__ BackwardLaunch<T> p) {
  using Ring = QkRing<T, kThreads, kBlocks, 3>;
  extern __shared__ uint4 shared[];
  __shared__ alignas(16) float sums_memory[BlockTotals<kThreads / kWarp, 2>::kFloats];
  BlockTotals<kThreads / kWarp, 2> sums(sums_memory);
  const QkRows& a = p.rows;
  const int column = static_cast<int>(threadIdx.x) * 8;
  const bool active = column < a.width, two = p.dy2 != nullptr;
  const PartRows rows = part_rows(a);
  if (blockIdx.y >= a.normed) return pass_part<T, true>(p, rows, column);
  const int64_t stride = a.parts * a.width, start = rows.first * stride + rows.offset + column;
  const T *dy = p.dy + start, *x = p.x + start, *dy2 = p.dy2 + (two ? start : 0);
  T* dx = p.dx + start;
  Ring ring(shared, active);
  const auto count = static_cast<int>(rows.last - rows.first);
  int ahead = active ? count : 0;
  const auto fetch = [&] {
    if (ahead > 0) {
      ring.fetch(0, dy);
      ring.fetch(1, x);
      if (two) {
        ring.fetch(2, dy2);
        dy2 += stride;
      }
      dy += stride;
      x += stride;
      --ahead;
    }
    ring.commit();
  };
#pragma unroll
  for (int k = 0; k < Ring::kAhead; ++k) fetch();
  float w[8] = {}, dw[8] = {}, dcolumn[8] = {};
  if (active) unpack(load_piece(static_cast<const T*>(a.weights[blockIdx.y]) + column), w);
  const float inverse = 1.0f / static_cast<float>(a.width);
  TurnTable<true> table(a, rows.first, column);
  // First look at row k, the ring's present or next one: its gradient turned back, and the warps'
  // sums.
  const auto begin_row = [&](int k, bool is_next, float(&g)[8]) {
    const auto take = [&](int tensor, float(&v)[8]) {
      is_next ? ring.take_next(tensor, v) : ring.take(tensor, v);
    };
    float turns[8] = {}, v[8], squares[8], products[8], sum[2];
    if (a.table != nullptr) table.next(turns);
    ring.template wait<1>();
    take(0, g);
    if (two) {
      take(2, v);
#pragma unroll
      for (int i = 0; i < 8; ++i) g[i] += v[i];
    }
    if (a.table != nullptr) rotate<true>(turns, g);
    take(1, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      squares[i] = v[i] * v[i];
      products[i] = (g[i] * w[i]) * v[i];
    }
    sum[0] = sum8(squares);
    sum[1] = sum8(products);
    sums.put(k & 1, sum);
  };
  const auto finish_row = [&](int k, float(&g)[8]) {
    float v[8], sum[2];
    sums.get(k & 1, sum);
    const float rstd = rsqrtf(sum[0] * inverse + a.eps);
    const float mean = sum[1] * rstd * inverse;
    ring.take(1, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float z = v[i] * rstd;
      dw[i] += g[i] * z;
      g[i] = (g[i] * w[i] - z * mean) * rstd;
    }
    if (active) store_piece(dx, pack<T>(g));
    dx += stride;
    if (p.columns != nullptr) {
#pragma unroll
      for (int i = 0; i < 8; ++i) dcolumn[i] += g[i];
    }
    fetch();
  };
  __syncthreads();
  float g[8] = {}, next_g[8] = {};
  if (count > 0) begin_row(0, false, g);
  __syncthreads();
  // The next row begins before this one ends, so that neither waits for its sums.
  for (int k = 0; k < count; ++k) {
    if (k + 1 < count) begin_row(k + 1, true, next_g);
    finish_row(k, g);
#pragma unroll
    for (int i = 0; i < 8; ++i) g[i] = next_g[i];
    __syncthreads();
  }
  const int64_t mine = (int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * a.width;
  store8<float, true>(p.weights + mine, column, a.width, dw);
  if (p.columns != nullptr) store8<float, true>(p.columns + mine, column, a.width, dcolumn);
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

bool can_vectorise(const QkRows& a, std::initializer_list<const void*> pointers) {
  bool ok = a.width % 8 == 0 && std::ranges::all_of(pointers, aligned16);
  for (int64_t i = 0; i < a.normed; ++i) ok = ok && aligned16(a.weights[i]);
  return ok && (a.table == nullptr || (a.width / a.heads % 8 == 0 && aligned16(a.table)));
}

// f.template operator()<T, kThreads, kBlocks>() for the smallest form that fits.
template <typename F>
void dispatch_form(DType dtype, unsigned threads, const F& f) {
  dispatch_float(dtype, [&]<typename T>() {
    if (threads <= 384) {
      f.template operator()<T, 384, sizeof(T) == 2 ? 2 : 1>();
    } else if (threads <= 640) {
      f.template operator()<T, 640, 1>();
    } else {
      f.template operator()<T, kMostRowThreads, 1>();
    }
  });
}

}  // namespace

void launch_qk_rows_forward(DType dtype, const QkRows& a, const void* x, void* y,
                            cudaStream_t stream) {
  if (a.rows == 0 || a.width == 0) return;
  const dim3 grid(static_cast<unsigned>(qk_rows_blocks(a.rows, a.normed, a.width)),
                  static_cast<unsigned>(a.normed));
  const unsigned threads = row_threads(a.width);
  if (can_vectorise(a, {x, y})) {
    dispatch_form(dtype, threads, [&]<typename T, int kThreads, int kBlocks>() {
      const auto kernel = qk_rows_forward_kernel<T, kThreads, kBlocks>;
      const int bytes = QkRing<T, kThreads, kBlocks, 1>::bytes(static_cast<int>(threads));
      allow_shared(kernel, bytes);
      kernel<<<grid, threads, static_cast<size_t>(bytes), stream>>>(a, static_cast<const T*>(x),
                                                                    static_cast<T*>(y));
    });
  } else {
    dispatch_float(dtype, [&]<typename T>() {
      plain_forward_kernel<<<grid, threads, 0, stream>>>(a, static_cast<const T*>(x),
                                                         static_cast<T*>(y));
    });
  }
  check_launch("qk_rows_forward");
  if (x == y || a.normed == a.parts) return;
  // The other parts are copied as one block a row.
  const int64_t element = size_bytes(dtype), skipped = a.normed * a.width * element,
                stride = a.parts * a.width * element;
  launch_copy_blocks({a.rows, stride - skipped, stride, stride},
                     static_cast<const std::byte*>(x) + skipped,
                     static_cast<std::byte*>(y) + skipped, stream);
}

void launch_qk_rows_backward(DType dtype, const QkRows& a, const QkRowsGrad& g,
                             cudaStream_t stream) {
  if (a.width == 0) return;
  const int64_t blocks = qk_rows_blocks(a.rows, a.normed, a.width);
  auto* const weights = static_cast<float*>(g.workspace);
  float* const columns = g.dcolumns == nullptr ? nullptr : weights + a.normed * blocks * a.width;
  if (a.rows > 0) {
    const bool pass = g.dy != g.dx || g.dy2 != nullptr || columns != nullptr;
    const dim3 grid(static_cast<unsigned>(blocks),
                    static_cast<unsigned>(pass ? a.parts : a.normed));
    const unsigned threads = row_threads(a.width);
    const auto launch_of = [&]<typename T>() {
      return BackwardLaunch<T>{a,
                               static_cast<const T*>(g.dy),
                               static_cast<const T*>(g.dy2),
                               static_cast<const T*>(g.x),
                               static_cast<T*>(g.dx),
                               weights,
                               columns};
    };
    if (can_vectorise(a, {g.dy, g.dy2, g.x, g.dx})) {
      dispatch_form(dtype, threads, [&]<typename T, int kThreads, int kBlocks>() {
        const auto kernel = qk_rows_backward_kernel<T, kThreads, kBlocks>;
        const int bytes = QkRing<T, kThreads, kBlocks, 3>::bytes(static_cast<int>(threads));
        allow_shared(kernel, bytes);
        kernel<<<grid, threads, static_cast<size_t>(bytes), stream>>>(
            launch_of.template operator()<T>());
      });
    } else {
      dispatch_float(dtype, [&]<typename T>() {
        plain_backward_kernel<<<grid, threads, 0, stream>>>(launch_of.template operator()<T>());
      });
    }
    check_launch("qk_rows_backward");
  }
  PartSums sums{.columns = a.width, .rows = blocks};
  const auto add = [&](const float* from, float* out) {
    sums.whole[sums.num_whole++] = {from, a.width, out};
  };
  WAM_CHECK(a.normed + (columns == nullptr ? 0 : a.parts) <= PartSums::kMostJobs) << a.parts;
  for (int64_t part = 0; part < a.normed; ++part) {
    add(weights + part * blocks * a.width, g.dweights[part]);
  }
  for (int64_t part = 0; part < a.parts && columns != nullptr; ++part) {
    add(columns + part * blocks * a.width, g.dcolumns + part * a.width);
  }
  launch_part_sums(sums, stream);
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
