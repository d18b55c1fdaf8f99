#include "wam/kernels/cuda/pictures.h"

#include "wam/kernels/cuda/support.cuh"

namespace wam::cuda {
namespace {

constexpr int kThreads = 256;

// A few neighbours, moved together.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Few {
  T v[kCount];
};

// kPixels bytes a thread, as one word where there are four.
template <int kPixels>
__global__ void __launch_bounds__(kThreads)
    pixels_to_float_kernel(const uint8_t* x, float* y, int64_t count) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    float v[kPixels];
    uint32_t bytes = 0;
    if constexpr (kPixels == 4) {
      bytes = reinterpret_cast<const uint32_t*>(x)[i];
    } else {
      bytes = x[i];
    }
#pragma unroll
    for (int k = 0; k < kPixels; ++k) {
      const auto byte = static_cast<float>(bytes >> (8 * k) & 255);
      v[k] = __fsub_rn(__fdiv_rn(byte, 255.0f), 0.5f) * 2.0f;  // the last step is exact
    }
    if constexpr (kPixels == 4) {
      reinterpret_cast<float4*>(y)[i] = {v[0], v[1], v[2], v[3]};
    } else {
      y[i] = v[0];
    }
  }
}

// Keys' cubic convolution kernel at distance x >= 0, a = -0.75.
__device__ float cubic(float x) {
  constexpr float a = -0.75f;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0f;
}

// Samples along one side: two (linear) or four (cubic).
template <int kTaps>
struct Taps {
  int position[kTaps];
  float weight[kTaps];
};
template <int kTaps>
__device__ __forceinline__ Taps<kTaps> taps_at(int i, int in, int out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  float at = __fsub_rn(__fmul_rn(scale, static_cast<float>(i) + 0.5f), 0.5f);
  if (kTaps == 2 && at < 0) at = 0;
  const float floor_at = floorf(at), t = at - floor_at;
  constexpr int kBefore = kTaps / 2 - 1;
  Taps<kTaps> taps;
#pragma unroll
  for (int j = 0; j < kTaps; ++j) {
    taps.position[j] = min(max(static_cast<int>(floor_at) - kBefore + j, 0), in - 1);
    const float distance = fabsf(t - static_cast<float>(j - kBefore));
    taps.weight[j] = kTaps == 4 ? cubic(distance) : 1 - distance;
  }
  return taps;
}

// A block takes a line of a picture, a thread one of its pixels.
template <int kTaps>
__global__ void __launch_bounds__(kThreads)
    resize_image_kernel(const __grid_constant__ ResizeImage a, const float* x, float* y) {
  const int height = static_cast<int>(a.height), width = static_cast<int>(a.width);
  const int out_height = static_cast<int>(a.out_height), out_width = static_cast<int>(a.out_width);
  const int channels = static_cast<int>(a.channels);
  for (int64_t line = blockIdx.x; line < a.pictures * out_height; line += gridDim.x) {
    const int64_t picture = line / out_height;
    const auto rows = taps_at<kTaps>(static_cast<int>(line % out_height), height, out_height);
    const float* from = x + picture * height * width * channels;
    for (int column = static_cast<int>(threadIdx.x); column < out_width; column += kThreads) {
      const auto columns = taps_at<kTaps>(column, width, out_width);
      float* to = y + (line * out_width + column) * channels;
      for (int c = 0; c < channels; ++c) {
        float sum = 0;
#pragma unroll
        for (int j = 0; j < kTaps; ++j) {
          const float* row = from + int64_t{rows.position[j]} * width * channels + c;
          float along = 0;
#pragma unroll
          for (int k = 0; k < kTaps; ++k) {
            along += row[columns.position[k] * channels] * columns.weight[k];
          }
          sum += along * rows.weight[j];
        }
        to[c] = sum;
      }
    }
  }
}

// One thread an output pixel; kPixels: channels, or 0 for any number.
template <typename From, typename To, int kPixels>
__global__ void __launch_bounds__(kThreads)
    fold_pixels_kernel(int64_t pixels, int height, int width, int any_channels, const From* x,
                       To* y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const auto out_width = static_cast<uint32_t>(width / 2);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < pixels; i += step) {
    const int64_t line = i / out_width;  // 2 line, as all heights are even
    const int64_t column = i - line * out_width;
    if constexpr (kPixels == 3) {
      Few<From, 2> v[2][3];
      Few<To, 4> out[3];
#pragma unroll
      for (int dy = 0; dy < 2; ++dy) {
        const From* from = x + ((2 * line + dy) * width + 2 * column) * 3;
#pragma unroll
        for (int k = 0; k < 3; ++k) v[dy][k] = reinterpret_cast<const Few<From, 2>*>(from)[k];
      }
#pragma unroll
      for (int k = 0; k < 12; ++k) {  // channel, column, row
        const int c = k / 4, at = k / 2 % 2 * 3 + c;
        out[c].v[k % 4] = narrow<To>(wide(v[k % 2][at / 2].v[at % 2]));
      }
#pragma unroll
      for (int c = 0; c < 3; ++c) reinterpret_cast<Few<To, 4>*>(y + i * 12)[c] = out[c];
    } else {
      for (int k = 0; k < 4 * any_channels; ++k) {
        const int64_t from = (2 * line + k % 2) * width + 2 * column + k / 2 % 2;
        y[i * 4 * any_channels + k] = narrow<To>(wide(x[from * any_channels + k / 4]));
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

void launch_pixels_to_float(int64_t count, const void* x, float* y, cudaStream_t stream) {
  if (count == 0) return;
  const auto* bytes = static_cast<const uint8_t*>(x);
  if (count % 4 == 0 && aligned16(x) && aligned16(y)) {
    pixels_to_float_kernel<4>
        <<<grid_for(count / 4, kThreads), kThreads, 0, stream>>>(bytes, y, count / 4);
  } else {
    pixels_to_float_kernel<1><<<grid_for(count, kThreads), kThreads, 0, stream>>>(bytes, y, count);
  }
  check_launch("pixels_to_float");
}

void launch_resize_image(const ResizeImage& a, const float* x, float* y, cudaStream_t stream) {
  if (a.pictures * a.out_height * a.out_width * a.channels == 0) return;
  WAM_CHECK(a.width * a.channels < int64_t{1} << 31 && a.height < int64_t{1} << 31 &&
            a.out_width < int64_t{1} << 31 && a.out_height < int64_t{1} << 31)
      << a.height << " x " << a.width << " to " << a.out_height << " x " << a.out_width;
  const auto kernel = a.bicubic ? resize_image_kernel<4> : resize_image_kernel<2>;
  kernel<<<grid_for(a.pictures * a.out_height, 1), kThreads, 0, stream>>>(a, x, y);
  check_launch("resize_image");
}

void launch_fold_pixels(const FoldPixels& a, const void* x, void* y, cudaStream_t stream) {
  const int64_t pixels = a.frames * (a.height / 2) * (a.width / 2);
  if (pixels * a.channels == 0) return;
  dispatch_float(a.from, [&]<typename From>() {
    dispatch_float(a.to, [&]<typename To>() {
      const bool three = a.channels == 3 && aligned16(x) && aligned16(y);
      const auto kernel = three ? fold_pixels_kernel<From, To, 3> : fold_pixels_kernel<From, To, 0>;
      kernel<<<grid_for(pixels, kThreads), kThreads, 0, stream>>>(
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
