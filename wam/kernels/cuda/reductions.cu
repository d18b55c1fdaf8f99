#include "wam/kernels/cuda/reductions.h"

#include "wam/kernels/cuda/row_ring.cuh"

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

// Results of a narrower type: rare and small.
__global__ void finish_column_sums_kernel(const float* partials, int64_t parts, int64_t columns,
                                          const float* accumulator, bf16* out) {
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float total = accumulator == nullptr ? 0.0f : accumulator[column];
  for (int64_t part = 0; part < parts; ++part) total += partials[part * columns + column];
  out[column] = narrow<bf16>(total);
}

// ---- sums of parts: a warp takes 128 columns ----

constexpr int kPartWarps = 8;

// Adds rows [first, last) in steps of `step`, four columns a lane, four rows in flight.
template <bool kVector>
__device__ __forceinline__ void add_parts(const PartSums::Job& job, int first, int last, int step,
                                          int column, int columns, float (&sum)[4]) {
  constexpr int kInFlight = 4;
  if (column >= columns) return;
  const float* const from = job.from + column;
  for (int row = first; row < last; row += kInFlight * step) {
    float4 part[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const float* at = from + (row + k * step) * job.stride;
      part[k] = float4{0, 0, 0, 0};
      if (row + k * step >= last) continue;
      if constexpr (kVector) {
        part[k] = *reinterpret_cast<const float4*>(at);
      } else {
        part[k].x = at[0];
        if (column + 1 < columns) part[k].y = at[1];
        if (column + 2 < columns) part[k].z = at[2];
        if (column + 3 < columns) part[k].w = at[3];
      }
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      sum[0] += part[k].x;
      sum[1] += part[k].y;
      sum[2] += part[k].z;
      sum[3] += part[k].w;
    }
  }
}

__device__ __forceinline__ void store_sum(const PartSums::Job& job, int64_t place, float sum) {
  job.out[place] = job.accumulator == nullptr ? sum : job.accumulator[place] + sum;
}

// The first rows of the grid: a block for each job over all rows, its warps every eighth row. The
// others: a warp for each segment of each job.
template <bool kVector>
__global__ void __launch_bounds__(kPartWarps* kWarp)
    part_sums_kernel(const __grid_constant__ PartSums a) {
  __shared__ float shared[kPartWarps][kWarp * 4];
  const int lane = static_cast<int>(threadIdx.x) % kWarp,
            warp = static_cast<int>(threadIdx.x) / kWarp;
  const int columns = static_cast<int>(a.columns), begin = static_cast<int>(blockIdx.x) * kWarp * 4,
            column = begin + lane * 4;
  const int rows = static_cast<int>(a.rows), y = static_cast<int>(blockIdx.y);
  float sum[4] = {};
  if (y < a.num_whole) {
    add_parts<kVector>(a.whole[y], warp, rows, kPartWarps, column, columns, sum);
#pragma unroll
    for (int i = 0; i < 4; ++i) shared[warp][lane * 4 + i] = sum[i];
    __syncthreads();
    const int mine = static_cast<int>(threadIdx.x);
    if (mine >= kWarp * 4 || begin + mine >= columns) return;
    float total = 0;
#pragma unroll
    for (int w = 0; w < kPartWarps; ++w) total += shared[w][mine];
    return store_sum(a.whole[y], begin + mine, total);
  }
  const int table_rows = static_cast<int>(a.table_rows),
            segments = static_cast<int>(a.batch) * table_rows;
  const int result = (y - a.num_whole) * kPartWarps + warp;
  if (result >= segments * a.num_segmented) return;
  const int segment = result % segments, b = segment / table_rows, t = segment % table_rows;
  const PartSums::Job& job = a.segmented[result / segments];
  const int length = static_cast<int>(a.length), tokens = static_cast<int>(a.batch) * length;
  const int from = b * length + a.first[t], to = b * length + a.first[t + 1];
  if (from < to) {
    const int first = static_cast<int>(share_owner(from, rows, tokens)) + segment;
    const int last = static_cast<int>(share_owner(to - 1, rows, tokens)) + segment + 1;
    add_parts<kVector>(job, first, last, 1, column, columns, sum);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (column + i < columns) store_sum(job, int64_t{segment} * columns + column + i, sum[i]);
  }
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
  if (a.out_dtype == DType::kBF16) {
    finish_column_sums_kernel<<<static_cast<unsigned>(ceil_div(a.columns, 256)), 256, 0, stream>>>(
        partials, parts, a.columns, a.accumulator, static_cast<bf16*>(a.out));
    check_launch("finish_column_sums");
    return;
  }
  PartSums sums{.columns = a.columns, .rows = parts, .num_whole = 1};
  sums.whole[0] = {partials, a.columns, static_cast<float*>(a.out), a.accumulator};
  launch_part_sums(sums, stream);
}

void launch_part_sums(const PartSums& a, cudaStream_t stream) {
  const int64_t segmented = a.num_segmented * a.batch * a.table_rows;
  const int64_t results = a.num_whole + ceil_div(segmented, kPartWarps);
  if (a.columns == 0 || results == 0) return;
  WAM_CHECK(results <= 65535 && a.columns < 1 << 30 && a.batch * a.length < 1 << 30)
      << results << " results of " << a.columns << " columns";
  bool vector = a.columns % 4 == 0;
  for (const auto* jobs : {a.whole, a.segmented}) {
    for (int i = 0; i < PartSums::kMostJobs; ++i) {
      vector = vector && aligned16(jobs[i].from) && jobs[i].stride % 4 == 0;
    }
  }
  const dim3 grid(static_cast<unsigned>(ceil_div(a.columns, kWarp * 4)),
                  static_cast<unsigned>(results));
  const auto kernel = vector ? part_sums_kernel<true> : part_sums_kernel<false>;
  kernel<<<grid, kPartWarps * kWarp, 0, stream>>>(a);
  check_launch("part_sums");
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
