#include "wam/kernels/cuda/reductions.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kSumWarps = 8;

// ---- column sums: block = 8 warps over one tile of 256 columns and one part of the rows ----

template <typename T, bool kVector>
__global__ void __launch_bounds__(kSumWarps* kWarp)
    column_sums_kernel(const T* x, int64_t rows, int64_t columns, int64_t rows_per_part,
                       float* partials) {
  __shared__ float shared[kSumWarps][kWarp * 8];
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column = int64_t{blockIdx.x} * kWarp * 8 + lane * 8;
  const int64_t first = int64_t{blockIdx.y} * rows_per_part,
                last = min(rows, first + rows_per_part);
  float sum[8] = {};
  int64_t row = first + warp;
  for (; row + 3 * kSumWarps < last; row += 4 * kSumWarps) {  // four loads in flight
    Pack<T> pack[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      pack[u] = load8<T, kVector>(x + (row + u * kSumWarps) * columns, column, columns);
    }
#pragma unroll
    for (int u = 0; u < 4; ++u) {
#pragma unroll
      for (int i = 0; i < 8; ++i) sum[i] += wide(pack[u].v[i]);
    }
  }
  for (; row < last; row += kSumWarps) {
    float v[8];
    load8<T, kVector>(x + row * columns, column, columns, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] += v[i];
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) shared[warp][i * kWarp + lane] = sum[i];
  __syncthreads();
  const int i = warp;  // 8 warps finish the 8 columns of each lane
  float total = 0;
#pragma unroll
  for (int w = 0; w < kSumWarps; ++w) total += shared[w][i * kWarp + lane];
  if (column + i < columns) partials[int64_t{blockIdx.y} * columns + column + i] = total;
}

// ---- segment sums: block = 4 warps over 128 columns of one result row ----

constexpr int kSegmentWarps = 4;

template <typename Out>
__global__ void __launch_bounds__(kSegmentWarps* kWarp) segment_sums_kernel(SegmentSums a) {
  __shared__ float shared[kSegmentWarps][kWarp * 4];
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column = int64_t{blockIdx.x} * kWarp * 4 + lane;  // and 32, 64, 96 further on
  const int64_t segment = a.join ? 0 : blockIdx.y, b0 = a.join ? 0 : blockIdx.z;
  const int64_t b1 = a.join ? a.batch : b0 + 1;
  float sum[4] = {};
  for (int64_t b = b0; b < b1; ++b) {
    int64_t first = 0, last = a.rows;
    if (a.first != nullptr) {
      first = a.join ? 0 : a.first[segment];
      last = a.join ? a.first[a.segments] : a.first[segment + 1];
    }
#pragma unroll 4
    for (int64_t row = first + warp; row < last; row += kSegmentWarps) {
      const float* from = a.partials + (b * a.batch_stride + row) * a.row_stride;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (column + i * kWarp < a.columns) sum[i] += from[column + i * kWarp];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) shared[warp][i * kWarp + lane] = sum[i];
  __syncthreads();
  const int64_t mine = int64_t{blockIdx.x} * kWarp * 4 + warp * kWarp + lane;
  if (mine >= a.columns) return;
  float total = a.accumulator == nullptr ? 0.0f : a.accumulator[mine];
#pragma unroll
  for (int w = 0; w < kSegmentWarps; ++w) total += shared[w][warp * kWarp + lane];
  static_cast<Out*>(a.out)[(b0 * a.segments + segment) * a.columns + mine] = narrow<Out>(total);
}

// ---- sum over a middle dim: one thread a result, or one warp where the dim is the last ----

template <typename T>
__global__ void sum_dim_kernel(const T* x, int64_t outer, int64_t size, int64_t inner, T* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < outer * inner; i += step) {
    const T* from = x + i / inner * size * inner + i % inner;
    float sum = 0;
    for (int64_t k = 0; k < size; ++k) sum += wide(from[k * inner]);
    y[i] = narrow<T>(sum);
  }
}
template <typename T>
__global__ void sum_last_dim_kernel(const T* x, int64_t outer, int64_t size, T* y) {
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < outer;
       row += warps) {
    float sum = 0;
    for (int64_t k = lane; k < size; k += kWarp) sum += wide(x[row * size + k]);
    sum = warp_sum(sum);
    if (lane == 0) y[row] = narrow<T>(sum);
  }
}

// ---- scalars: parts by a fixed grid, then one block adds the parts ----

constexpr int kScalarBlocks = 1056, kScalarThreads = 256;

__device__ double block_total(double x) {
  __shared__ double shared[kWarp];
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane == 0) shared[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = lane < static_cast<int>(blockDim.x) / kWarp ? shared[lane] : 0.0;
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

template <typename T, bool kVector>
__global__ void __launch_bounds__(kScalarThreads)
    sum_squares_kernel(const T* x, int64_t count, double* partials) {
  double total = 0;
  const int64_t step = int64_t{gridDim.x} * blockDim.x * 8;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 8; i < count; i += step) {
    float v[8], sum = 0;
    load8<T, kVector>(x, i, count, v);
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += v[k] * v[k];
    total += sum;
  }
  total = block_total(total);
  if (threadIdx.x == 0) partials[blockIdx.x] = total;
}

__global__ void __launch_bounds__(1024)
    add_parts_kernel(const double* partials, int count, double scale, float* out) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 1024) sum += partials[i];
  sum = block_total(sum);
  if (threadIdx.x == 0) *out = static_cast<float>(sum * scale);
}

// ---- weighted squared error: one warp a row ----

__device__ float read(const void* p, DType dtype, int64_t i) {
  return dtype == DType::kBF16 ? wide(static_cast<const bf16*>(p)[i])
                               : static_cast<const float*>(p)[i];
}

__global__ void __launch_bounds__(kScalarThreads)
    weighted_mse_kernel(WeightedMseArgs a, double* partials) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (row >= a.batch * a.length) return;
  float sum = 0;
  for (int64_t c = lane; c < a.width; c += kWarp) {
    const int64_t at = row * a.width + c;
    const float difference = read(a.pred, a.pred_dtype, at) - read(a.target, a.target_dtype, at);
    const float mask = a.mask == nullptr ? 1.0f : a.mask[at];
    sum += mask * (difference * difference);
  }
  sum = warp_sum(sum);
  if (lane != 0) return;
  const int64_t b = row / a.length;
  partials[row] = double{a.row_weight[b * a.num_rows + a.index[row % a.length]]} * sum;
}

template <typename T>
__global__ void weighted_mse_grad_kernel(WeightedMseArgs a, const float* dloss, T* dpred) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, count = a.batch * a.length * a.width;
  const float factor = 2.0f * a.scale * *dloss;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t row = i / a.width, b = row / a.length;
    const float difference = read(a.pred, a.pred_dtype, i) - read(a.target, a.target_dtype, i);
    const float mask = a.mask == nullptr ? 1.0f : a.mask[i];
    const float weight = a.row_weight[b * a.num_rows + a.index[row % a.length]];
    dpred[i] = narrow<T>(factor * weight * (mask * difference));
  }
}

}  // namespace

void launch_column_sums(const ColumnSums& a, cudaStream_t stream) {
  if (a.columns == 0) return;
  const int64_t parts = column_sums_parts(a.rows, a.columns);
  auto* partials = static_cast<float*>(a.workspace);
  if (parts > 0) {
    const dim3 grid(static_cast<unsigned>(ceil_div(a.columns, kWarp * 8)),
                    static_cast<unsigned>(parts));
    const int64_t rows_per_part = ceil_div(a.rows, parts);
    dispatch_float(a.dtype, [&]<typename T>() {
      const T* x = static_cast<const T*>(a.x);
      if (a.columns % 8 == 0 && aligned16(x)) {
        column_sums_kernel<T, true>
            <<<grid, kSumWarps * kWarp, 0, stream>>>(x, a.rows, a.columns, rows_per_part, partials);
      } else {
        column_sums_kernel<T, false>
            <<<grid, kSumWarps * kWarp, 0, stream>>>(x, a.rows, a.columns, rows_per_part, partials);
      }
    });
    check_launch("column_sums");
  }
  launch_segment_sums({.partials = partials,
                       .columns = a.columns,
                       .row_stride = a.columns,
                       .rows = parts,
                       .out = a.out,
                       .out_dtype = a.out_dtype,
                       .accumulator = a.accumulator},
                      stream);
}

void launch_segment_sums(const SegmentSums& a, cudaStream_t stream) {
  if (a.columns == 0 || (!a.join && a.segments * a.batch == 0)) return;
  const dim3 grid(static_cast<unsigned>(ceil_div(a.columns, kWarp * 4)),
                  a.join ? 1u : static_cast<unsigned>(a.segments),
                  a.join ? 1u : static_cast<unsigned>(a.batch));
  dispatch_float(a.out_dtype, [&]<typename Out>() {
    segment_sums_kernel<Out><<<grid, kSegmentWarps * kWarp, 0, stream>>>(a);
  });
  check_launch("segment_sums");
}

void launch_sum_dim(DType dtype, const void* x, int64_t outer, int64_t size, int64_t inner, void* y,
                    cudaStream_t stream) {
  if (outer * inner == 0) return;
  dispatch_float(dtype, [&]<typename T>() {
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (inner == 1) {
      sum_last_dim_kernel<<<grid_for(outer, 8), 256, 0, stream>>>(from, outer, size, to);
    } else {
      sum_dim_kernel<<<grid_for(outer * inner, 256), 256, 0, stream>>>(from, outer, size, inner,
                                                                       to);
    }
  });
  check_launch("sum_dim");
}

void launch_sum_squares(DType dtype, const void* x, int64_t count, float* out, void* workspace,
                        cudaStream_t stream) {
  auto* partials = static_cast<double*>(workspace);
  dispatch_float(dtype, [&]<typename T>() {
    const T* from = static_cast<const T*>(x);
    if (count % 8 == 0 && aligned16(x)) {
      sum_squares_kernel<T, true>
          <<<kScalarBlocks, kScalarThreads, 0, stream>>>(from, count, partials);
    } else {
      sum_squares_kernel<T, false>
          <<<kScalarBlocks, kScalarThreads, 0, stream>>>(from, count, partials);
    }
  });
  check_launch("sum_squares");
  add_parts_kernel<<<1, 1024, 0, stream>>>(partials, kScalarBlocks, 1.0, out);
  check_launch("add_parts");
}

void launch_weighted_mse(const WeightedMseArgs& a, float* loss, void* workspace,
                         cudaStream_t stream) {
  const int64_t rows = a.batch * a.length;
  auto* partials = static_cast<double*>(workspace);
  if (rows > 0) {
    weighted_mse_kernel<<<static_cast<unsigned>(ceil_div(rows, kScalarThreads / kWarp)),
                          kScalarThreads, 0, stream>>>(a, partials);
    check_launch("weighted_mse");
  }
  add_parts_kernel<<<1, 1024, 0, stream>>>(partials, static_cast<int>(rows), double{a.scale}, loss);
  check_launch("add_parts");
}

void launch_weighted_mse_grad(const WeightedMseArgs& a, const float* dloss, void* dpred,
                              cudaStream_t stream) {
  const int64_t count = a.batch * a.length * a.width;
  if (count == 0) return;
  dispatch_float(a.pred_dtype, [&]<typename T>() {
    weighted_mse_grad_kernel<<<grid_for(count, 256), 256, 0, stream>>>(a, dloss,
                                                                       static_cast<T*>(dpred));
  });
  check_launch("weighted_mse_grad");
}

}  // namespace wam::cuda
