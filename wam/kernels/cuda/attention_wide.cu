#include "wam/kernels/cuda/attention_wide.h"
#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;

// The larger (or the sum) of the block's numbers, for every thread.
template <bool kMax>
__device__ float over_block(float x, float (&shared)[kWarps]) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, x, step);
    x = kMax ? fmaxf(x, other) : x + other;
  }
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = x;
  __syncthreads();
  x = shared[0];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) x = kMax ? fmaxf(x, shared[i]) : x + shared[i];
  return x;
}

// One block a row, which waits in shared memory: its place is written over.
__global__ void __launch_bounds__(kThreads)
    softmax_rows_kernel(const __grid_constant__ ScoreRows z, float* scores, float* lse) {
  extern __shared__ float row[];
  __shared__ float partial[kWarps];
  const int thread = static_cast<int>(threadIdx.x), length = static_cast<int>(z.length);
  for (int64_t at = blockIdx.x; at < z.rows; at += gridDim.x) {
    const float* from = scores + at * z.pitch;
    float most = -INFINITY;
    for (int i = thread; i < length; i += kThreads) {
      row[i] = from[i];
      most = fmaxf(most, row[i]);
    }
    most = over_block<true>(most, partial);
    float sum = 0;
    for (int i = thread; i < length; i += kThreads) {
      row[i] = __expf(row[i] - most);
      sum += row[i];
    }
    sum = over_block<false>(sum, partial);
    bf16* to = reinterpret_cast<bf16*>(scores + at * z.pitch);
    const float factor = 1.0f / sum;
    for (int i = thread; i < length; i += kThreads) to[i] = narrow<bf16>(row[i] * factor);
    if (thread == 0) lse[at] = most + logf(sum);
  }
}

}  // namespace

void launch_softmax_rows(const ScoreRows& z, float* scores, float* lse, cudaStream_t stream) {
  const auto bytes = static_cast<size_t>(z.length) * sizeof(float);
  WAM_CHECK(bytes <= 48 * 1024 - 256) << z.length << " keys";
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(z.rows, 1 << 20));
  softmax_rows_kernel<<<blocks, kThreads, bytes, stream>>>(z, scores, lse);
  check_launch("softmax_rows");
}

}  // namespace wam::cuda
