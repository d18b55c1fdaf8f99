#include "wam/kernels/cuda/pictures.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;

// One thread an output pixel.
template <typename From, typename To>
__global__ void fold_pixels_kernel(int64_t pixels, int height, int width, int channels,
                                   const From* x, To* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < pixels; i += step) {
    const int64_t line = i / (width / 2), column = i % (width / 2);
    const int64_t frame = line / (height / 2), row = line % (height / 2);
    for (int dx = 0; dx < 2; ++dx) {
      for (int dy = 0; dy < 2; ++dy) {
        const From* from =
            x + ((frame * height + 2 * row + dy) * width + 2 * column + dx) * channels;
        for (int c = 0; c < channels; ++c) {
          y[i * 4 * channels + 4 * c + 2 * dx + dy] = narrow<To>(wide(from[c]));
        }
      }
    }
  }
}

// Sizes fit into 32 bits but for the product of all: a thread finds its pixel once.
struct AverageSizes {
  int out_time, out_height, out_width, time, height, width, channels, out_channels, ft, fs, group,
      pad;
};

template <typename T>
__global__ void average_down_kernel(const __grid_constant__ AverageSizes a, int64_t pixels,
                                    const T* x, const T* y, T* out) {
  const int lanes = static_cast<int>(blockDim.x);
  const float scale = 1.0f / static_cast<float>(a.group);
  const int area = a.fs * a.fs, volume = a.ft * area;
  for (int64_t pixel = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; pixel < pixels;
       pixel += int64_t{gridDim.x} * blockDim.y) {
    int64_t rest = pixel;
    const int w = static_cast<int>(rest % a.out_width),
              h = static_cast<int>(rest / a.out_width % a.out_height);
    rest /= a.out_width * a.out_height;
    const int t = static_cast<int>(rest % a.out_time);
    const int64_t sample = rest / a.out_time;
    for (int o = static_cast<int>(threadIdx.x); o < a.out_channels; o += lanes) {
      float sum = 0;
      for (int k = 0; k < a.group; ++k) {
        const int flat = o * a.group + k, c = flat / volume, at = flat % volume;
        const int frame = t * a.ft + at / area - a.pad;
        if (frame < 0) continue;
        const int64_t row = h * a.fs + at % area / a.fs, column = w * a.fs + at % a.fs;
        sum += wide(
            x[(((sample * a.time + frame) * a.height + row) * a.width + column) * a.channels + c]);
      }
      const int64_t place = pixel * a.out_channels + o;
      out[place] = narrow<T>(wide(y[place]) + sum * scale);
    }
  }
}

// The published sizes: groups are 2 x 2 pixels of one channel and frame. A thread makes eight
// neighbouring output channels: 8 / kFt channels of kFt frames.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Few {
  T v[kCount];
};
template <typename T, int kFt>
__global__ void __launch_bounds__(kThreads)
    average_quads_kernel(const __grid_constant__ AverageSizes a, int64_t count, const T* x,
                         const T* y, T* out) {
  constexpr int kChannels = 8 / kFt;
  using Channels = Few<T, kChannels>;
  const int packs = a.out_channels / 8;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t rest = i / packs;
    const int c = static_cast<int>(i - rest * packs) * kChannels;
    const int w = static_cast<int>(rest % a.out_width);
    rest /= a.out_width;
    const int h = static_cast<int>(rest % a.out_height);
    rest /= a.out_height;
    const int t = static_cast<int>(rest % a.out_time);
    const int64_t sample = rest / a.out_time;
    Pack<T> base = load8<T, true>(y + i * 8, 0, 8);
    Channels quads[kFt][4];
#pragma unroll
    for (int f = 0; f < kFt; ++f) {
      const int frame = t * kFt + f - a.pad;
      const T* from = x + ((sample * a.time + frame) * a.height + 2 * h) * a.width * a.channels +
                      int64_t{2} * w * a.channels + c;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const T* pixel = from + (int64_t{k / 2} * a.width + k % 2) * a.channels;
        quads[f][k] = frame >= 0 ? *reinterpret_cast<const Channels*>(pixel) : Channels{};
      }
    }
    float sum[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const auto& quad = quads[k % kFt];
      const int at = k / kFt;
      sum[k] = wide(base.v[k]) +
               0.25f * (((wide(quad[0].v[at]) + wide(quad[1].v[at])) + wide(quad[2].v[at])) +
                        wide(quad[3].v[at]));
    }
    store8<T, true>(out + i * 8, 0, 8, sum);
  }
}

}  // namespace

void launch_fold_pixels(const FoldPixels& a, const void* x, void* y, cudaStream_t stream) {
  const int64_t pixels = a.frames * (a.height / 2) * (a.width / 2);
  if (pixels * a.channels == 0) return;
  dispatch_float(a.from, [&]<typename From>() {
    dispatch_float(a.to, [&]<typename To>() {
      fold_pixels_kernel<<<grid_for(pixels, kThreads), kThreads, 0, stream>>>(
          pixels, static_cast<int>(a.height), static_cast<int>(a.width),
          static_cast<int>(a.channels), static_cast<const From*>(x), static_cast<To*>(y));
    });
  });
  check_launch("fold_pixels");
}

void launch_average_down(const AverageDown& a, const void* x, const void* y, void* out,
                         cudaStream_t stream) {
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  const int64_t out_time = ceil_div(a.time, a.ft);
  const int64_t pixels = a.batch * out_time * (a.height / a.fs) * (a.width / a.fs);
  if (pixels * a.out_channels == 0) return;
  const int64_t block = a.channels * a.ft * a.fs * a.fs;
  const AverageSizes sizes{number(out_time),
                           number(a.height / a.fs),
                           number(a.width / a.fs),
                           number(a.time),
                           number(a.height),
                           number(a.width),
                           number(a.channels),
                           number(a.out_channels),
                           number(a.ft),
                           number(a.fs),
                           number(block / a.out_channels),
                           number(out_time * a.ft - a.time)};
  const dim3 threads(64, 4);
  const bool quads = a.fs == 2 && sizes.group == 4 && (a.ft == 1 || a.ft == 2) &&
                     a.out_channels % 8 == 0 && a.channels % 8 == 0 && aligned16(x) &&
                     aligned16(y) && aligned16(out);
  dispatch_float(a.dtype, [&]<typename T>() {
    if (quads) {
      const auto kernel = a.ft == 1 ? average_quads_kernel<T, 1> : average_quads_kernel<T, 2>;
      const int64_t count = pixels * a.out_channels / 8;
      kernel<<<grid_for(count, kThreads), kThreads, 0, stream>>>(
          sizes, count, static_cast<const T*>(x), static_cast<const T*>(y), static_cast<T*>(out));
      return;
    }
    average_down_kernel<<<grid_for(pixels, 4), threads, 0, stream>>>(
        sizes, pixels, static_cast<const T*>(x), static_cast<const T*>(y), static_cast<T*>(out));
  });
  check_launch("average_down");
}

}  // namespace wam::cuda
