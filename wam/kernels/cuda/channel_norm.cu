// A row belongs to a power of two of neighbouring lanes, so that narrow rows fill warps too; all of
// it is in registers before the first use.
#include "wam/kernels/cuda/channel_norm.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;

template <typename T>
__device__ __forceinline__ float silu_of(float v) {
  if constexpr (sizeof(T) == 2) return __fdividef(v, 1.0f + __expf(-v));
  return v / (1.0f + expf(-v));
}

__device__ __forceinline__ float factor_of(float square, int64_t channels) {
  return sqrtf(static_cast<float>(channels)) / fmaxf(sqrtf(square), 1e-12f);
}

// kPieces pieces of eight channels a lane; `lanes` lanes a row.
template <typename T, int kPieces, bool kSilu>
__global__ void __launch_bounds__(kThreads)
    channel_norm_kernel(int64_t rows, int channels, int lanes, const T* x, const T* gamma, T* y) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t row = (int64_t{blockIdx.x} * kThreads + threadIdx.x) / lanes;
  const bool valid = row < rows;  // the others take part in the sums
  const T* from = x + row * channels;
  Pack<T> pack[kPieces];
#pragma unroll
  for (int k = 0; k < kPieces; ++k) {
    pack[k] = load8<T, true>(from, (k * lanes + lane) * 8, valid ? channels : 0);
  }
  float square = 0;
#pragma unroll
  for (int k = 0; k < kPieces; ++k) {
#pragma unroll
    for (int i = 0; i < 8; ++i) square += wide(pack[k].v[i]) * wide(pack[k].v[i]);
  }
  for (int step = lanes / 2; step > 0; step /= 2)
    square += __shfl_xor_sync(kAllLanes, square, step);
  if (!valid) return;
  const float factor = factor_of(square, channels);
#pragma unroll
  for (int k = 0; k < kPieces; ++k) {
    const int column = (k * lanes + lane) * 8;
    float g[8];
    load8<T, true>(gamma, column, channels, g);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float v = (wide(pack[k].v[i]) * factor) * g[i];
      g[i] = kSilu ? silu_of<T>(v) : v;
    }
    store8<T, true>(y + row * channels, column, channels, g);
  }
}

// Any width: one warp a row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    any_channel_norm_kernel(int64_t rows, int64_t channels, bool silu, const T* x, const T* gamma,
                            T* y) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / kWarp;
  for (int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < rows;
       row += warps) {
    const T* from = x + row * channels;
    float square = 0;
    for (int64_t c = lane; c < channels; c += kWarp) square += wide(from[c]) * wide(from[c]);
    const float factor = factor_of(warp_sum(square), channels);
    for (int64_t c = lane; c < channels; c += kWarp) {
      const float v = (wide(from[c]) * factor) * wide(gamma[c]);
      y[row * channels + c] = narrow<T>(silu ? silu_of<T>(v) : v);
    }
  }
}

// Lanes and pieces a lane for a row of `pieces`: the fewest lanes that hold it in five pieces each.
constexpr int kMostPieces = 5;
int lanes_of(int64_t pieces) {
  int lanes = 1;
  while (lanes < kWarp && lanes * kMostPieces < pieces) lanes *= 2;
  return lanes;
}

template <typename T, int kPieces>
void launch(int64_t rows, int64_t channels, int lanes, bool silu, const T* x, const T* gamma, T* y,
            cudaStream_t stream) {
  const int64_t blocks = ceil_div(rows * lanes, kThreads);
  WAM_CHECK(blocks < int64_t{1} << 31) << rows << " rows";
  const auto kernel =
      silu ? channel_norm_kernel<T, kPieces, true> : channel_norm_kernel<T, kPieces, false>;
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(rows, static_cast<int>(channels),
                                                                 lanes, x, gamma, y);
}

template <typename T>
void launch_typed(int64_t rows, int64_t channels, bool silu, const T* x, const T* gamma, T* y,
                  cudaStream_t stream) {
  const int64_t pieces = channels / 8;
  const int lanes = lanes_of(pieces);
  const bool vector = channels % 8 == 0 && aligned16(x) && aligned16(gamma) && aligned16(y);
  if (!vector || pieces > int64_t{kMostPieces} * kWarp) {
    any_channel_norm_kernel<<<grid_for(rows, kThreads / kWarp), kThreads, 0, stream>>>(
        rows, channels, silu, x, gamma, y);
    return;
  }
  switch (ceil_div(pieces, lanes)) {
    case 1:
      return launch<T, 1>(rows, channels, lanes, silu, x, gamma, y, stream);
    case 2:
      return launch<T, 2>(rows, channels, lanes, silu, x, gamma, y, stream);
    case 3:
      return launch<T, 3>(rows, channels, lanes, silu, x, gamma, y, stream);
    case 4:
      return launch<T, 4>(rows, channels, lanes, silu, x, gamma, y, stream);
    default:
      return launch<T, kMostPieces>(rows, channels, lanes, silu, x, gamma, y, stream);
  }
}

}  // namespace

void launch_channel_norm(DType dtype, int64_t rows, int64_t channels, bool silu, const void* x,
                         const void* gamma, void* y, cudaStream_t stream) {
  if (rows * channels == 0) return;
  dispatch_float(dtype, [&]<typename T>() {
    launch_typed(rows, channels, silu, static_cast<const T*>(x), static_cast<const T*>(gamma),
                 static_cast<T*>(y), stream);
  });
  check_launch("channel_norm");
}

}  // namespace wam::cuda
