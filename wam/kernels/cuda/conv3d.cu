// The plain convolution, and what brings operands into the tensor cores' layout.
#include "wam/kernels/cuda/conv3d.h"
#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;

// One thread an output element, channels side by side.
template <typename T>
__global__ void plain_conv3d_kernel(const __grid_constant__ ConvSizes z, int64_t count, const T* x,
                                    const T* w, const T* bias, const T* residual, T* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t taps = z.kernel[0] * z.kernel[1] * z.kernel[2];
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t o = i % z.out_channels;
    int64_t rest = i / z.out_channels, first[3];
    for (int d = 0; d < 3; ++d) {
      first[d] = rest % z.out[d] * z.stride[d] - z.before[d];
      rest /= z.out[d];
    }
    float sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t at[3] = {first[0] + tap % z.kernel[0],
                             first[1] + tap / z.kernel[0] % z.kernel[1],
                             first[2] + tap / z.kernel[0] / z.kernel[1]};
      bool inside = true;
      for (int d = 0; d < 3; ++d) inside = inside && at[d] >= 0 && at[d] < z.in[d];
      if (!inside) continue;
      const T* row =
          x + (((rest * z.in[2] + at[2]) * z.in[1] + at[1]) * z.in[0] + at[0]) * z.channels;
      const T* filter = w + o * z.channels * taps + tap;
      for (int64_t c = 0; c < z.channels; ++c) sum += wide(row[c]) * wide(filter[c * taps]);
    }
    sum += wide(bias[o]);
    if (residual != nullptr) sum += wide(residual[i]);
    y[i] = narrow<T>(sum);
  }
}

// A block takes a filter, some channels at a time, so that reads and writes are both coalesced.
constexpr int kTile = 8192;
__global__ void __launch_bounds__(kThreads)
    pack_filters_kernel(int channels, int taps, int width, const bf16* weight, bf16* packed) {
  __shared__ bf16 tile[kTile];
  const int together = max(kTile / taps, 1), thread = static_cast<int>(threadIdx.x);
  weight += int64_t{blockIdx.x} * channels * taps;
  packed += int64_t{blockIdx.x} * width * taps;
  for (int begin = static_cast<int>(blockIdx.y) * together; begin < width;
       begin += static_cast<int>(gridDim.y) * together) {
    const int count = min(together, width - begin), there = max(min(count, channels - begin), 0);
    for (int i = thread; i < there * taps; i += kThreads) tile[i] = weight[begin * taps + i];
    __syncthreads();
    for (int i = thread; i < count * taps; i += kThreads) {
      const int tap = i / count, c = i % count;
      packed[tap * width + begin + c] = c < there ? tile[c * taps + tap] : narrow<bf16>(0.0f);
    }
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kThreads)
    pad_pixels_kernel(const __grid_constant__ PadPixels p, int64_t count, const bf16* x, bf16* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, packs = p.width / 8;
  const auto line_packs = static_cast<uint32_t>(p.pixels * packs);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const int64_t line = i / line_packs;
    const auto in_line = static_cast<uint32_t>(i - line * line_packs);
    const int64_t pixel = int64_t{in_line / static_cast<uint32_t>(packs)} - p.before;
    const int64_t first = in_line % static_cast<uint32_t>(packs) * 8;
    float v[8] = {};
    if (pixel >= 0 && pixel < p.in_pixels) {
      load8<bf16, false>(x + (line * p.in_pixels + pixel) * p.channels, first, p.channels, v);
    }
    store8<bf16, true>(y + i * 8, 0, 8, v);
  }
}

}  // namespace

void launch_plain_conv3d(const ConvSizes& z, DType dtype, const ConvOperands& a,
                         cudaStream_t stream) {
  dispatch_float(dtype, [&]<typename T>() {
    const int64_t count = z.out_rows() * z.out_channels;
    plain_conv3d_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
        z, count, static_cast<const T*>(a.x), static_cast<const T*>(a.weight),
        static_cast<const T*>(a.bias), static_cast<const T*>(a.residual), static_cast<T*>(a.y));
  });
  check_launch("conv3d");
}

void launch_pack_filters(int64_t out_channels, int64_t channels, int64_t taps, int64_t width,
                         const void* weight, void* packed, cudaStream_t stream) {
  WAM_CHECK(taps <= kTile && width * taps < int64_t{1} << 31) << taps << " taps of " << width;
  const int64_t together = kTile / taps;
  const dim3 grid(static_cast<unsigned>(out_channels),
                  static_cast<unsigned>(std::min<int64_t>(ceil_div(width, together), 1024)));
  pack_filters_kernel<<<grid, kThreads, 0, stream>>>(
      static_cast<int>(channels), static_cast<int>(taps), static_cast<int>(width),
      static_cast<const bf16*>(weight), static_cast<bf16*>(packed));
  check_launch("pack_filters");
}

void launch_pad_pixels(const PadPixels& p, const void* x, void* y, cudaStream_t stream) {
  WAM_CHECK(p.width % 8 == 0 && p.pixels * p.width < int64_t{1} << 31)
      << p.pixels << " x " << p.width;
  const int64_t count = p.lines * p.pixels * p.width / 8;
  pad_pixels_kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
      p, count, static_cast<const bf16*>(x), static_cast<bf16*>(y));
  check_launch("pad_pixels");
}

}  // namespace wam::cuda
