// Every tiling of the tensor-core convolution on layers of the autoencoders: the same bits from
// all, and those of the plain kernel up to rounding. Prints what each takes. Skips aloud without a
// GPU.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/kernels/cuda/conv3d.h"
#include "wam/kernels/cuda/fill.h"
#include "wam/kernels/cuda/support.h"
#include "wam/tensor/host_tensor.h"

namespace wam::cuda {
namespace {

class Buffer {
 public:
  // Uniform in [-bound, bound).
  Buffer(int64_t count, float bound, uint64_t seed) : count_(count) {
    check(cudaMalloc(&data_, static_cast<size_t>(2 * count)), "cudaMalloc");
    launch_fill_uniform({data_, count, DType::kBF16, -bound, bound, seed}, nullptr);
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return data_; }
  void poison() const {
    check(cudaMemset(data_, 0xFF, static_cast<size_t>(2 * count_)), "cudaMemset");
  }
  HostTensor read() const {
    HostTensor host(DType::kBF16, Shape{count_});
    check(cudaMemcpy(host.data(), data_, static_cast<size_t>(2 * count_), cudaMemcpyDeviceToHost),
          "reading a result");
    return host;
  }

 private:
  int64_t count_;
  void* data_ = nullptr;
};

struct Layer {
  const char* name;
  int64_t batch, channels, out_channels, in[3], kernel[3], stride[3], before[3], after[3];
};

ConvSizes sizes_of(const Layer& l) {
  ConvSizes z{.batch = l.batch, .channels = l.channels, .out_channels = l.out_channels};
  for (int d = 0; d < 3; ++d) {
    z.in[d] = l.in[d];
    z.kernel[d] = l.kernel[d];
    z.stride[d] = l.stride[d];
    z.before[d] = l.before[d];
    z.out[d] = (l.in[d] + l.before[d] + l.after[d] - l.kernel[d]) / l.stride[d] + 1;
  }
  z.pixel_pitch = l.channels;
  z.line_pitch = l.in[0];
  return z;
}

float milliseconds(const std::function<void()>& run) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  check(cudaEventRecord(begin, nullptr), "cudaEventRecord");
  for (int i = 0; i < 5; ++i) run();
  check(cudaEventRecord(end, nullptr), "cudaEventRecord");
  check(cudaEventSynchronize(end), "running the kernel");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ms / 5;
}

// Two roundings to bf16 of sums that differ by f32's rounding: one unit of the last place, or, for
// sums that cancel, a part of their size.
bool close(const HostTensor& got, const HostTensor& want) {
  const HostTensor a = got.to(DType::kF32), b = want.to(DType::kF32);
  double square = 0;
  for (const float v : b.as<float>()) square += double{v} * double{v};
  const double rms = std::sqrt(square / static_cast<double>(b.num_elements()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.as<float>()[static_cast<size_t>(i)],
                 y = b.as<float>()[static_cast<size_t>(i)];
    if (!(std::fabs(x - y) <= 0x1p-7 * std::fabs(y) + 1e-4 * rms)) {
      fmt::print("  element {}: {} and {}\n", i, x, y);
      return false;
    }
  }
  return true;
}

bool try_layer(const Layer& layer) {
  const ConvSizes z = sizes_of(layer);
  const int64_t terms = z.channels * z.taps(), outputs = z.out_rows() * z.out_channels;
  const float bound = std::sqrt(3.0f / static_cast<float>(terms));
  const Buffer x(z.in_rows() * z.channels, 1, 1), w(z.out_channels * terms, bound, 2);
  const Buffer packed(z.out_channels * terms, 0, 3), bias(z.out_channels, 1, 4);
  const Buffer residual(outputs, 1, 5), y(outputs, 1, 6);
  launch_pack_filters(z.out_channels, z.channels, z.taps(), z.channels, w.data(), packed.data(),
                      nullptr);
  ConvOperands operands{x.data(), w.data(), bias.data(), residual.data(), y.data(), nullptr};
  launch_plain_conv3d(z, DType::kBF16, operands, nullptr);
  const HostTensor want = y.read();
  operands.weight = packed.data();
  const ConvTiling chosen = conv_tiling(z);
  HostTensor first;
  bool right = true;
  const std::vector<ConvTiling> tilings = conv_tilings(z);
  for (const ConvTiling& t : tilings) {
    y.poison();
    launch_hopper_conv3d(z, t, operands, nullptr);
    const HostTensor got = y.read();
    if (first.empty()) first = got;
    const bool same =
        std::memcmp(got.data(), first.data(), static_cast<size_t>(got.size_bytes())) == 0;
    const bool near = same && &t != &tilings.front() ? true : close(got, want);
    right = right && same && near;
    const float ms = milliseconds([&] { launch_hopper_conv3d(z, t, operands, nullptr); });
    fmt::print(
        "{:12} {} {:3} columns, box {:3} x {:3} x {:2} x {:2}: {:7.1f} us, {:4.0f} TFLOP/s{}{}{}\n",
        layer.name, t.lines ? "lines" : "taps ", t.columns, t.box[0], t.box[1], t.box[2], t.box[3],
        1e3 * ms, 2e-9 * static_cast<double>(outputs * terms) / ms, same ? "" : " OTHER BITS",
        near ? "" : " WRONG",
        t.lines == chosen.lines && t.columns == chosen.columns ? "  chosen" : "");
  }
  return right;
}

int run() {
  const Layer layers[] = {
      {"160", 1, 160, 160, {160, 80, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 1, 0}},
      {"320", 2, 320, 320, {80, 40, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 1, 0}},
      {"640", 4, 640, 640, {40, 20, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 1, 0}},
      {"640 small", 4, 640, 640, {20, 10, 9}, {3, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 1, 0}},
      {"96", 1, 96, 96, {160, 88, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 1, 0}},
      {"384 odd", 1, 384, 192, {39, 43, 9}, {3, 3, 3}, {1, 1, 1}, {1, 1, 2}, {1, 1, 0}},
      {"halving", 1, 160, 160, {160, 80, 5}, {3, 3, 1}, {2, 2, 1}, {0, 0, 0}, {1, 1, 0}},
      {"time", 4, 320, 320, {40, 20, 33}, {1, 1, 3}, {1, 1, 2}, {0, 0, 0}, {0, 0, 0}},
      {"pointwise", 2, 160, 320, {80, 40, 9}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
  };
  int failed = 0;
  for (const Layer& layer : layers) failed += try_layer(layer) ? 0 : 1;
  fmt::print("{} layers, {} failed\n", std::size(layers), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace wam::cuda

int main() {
  int devices = 0, major = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    fmt::print("SKIPPED: no GPU, so no convolution was tried\n");
    return 0;
  }
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess ||
      major != 9) {
    fmt::print("SKIPPED: not a Hopper GPU\n");
    return 0;
  }
  try {
    return wam::cuda::run();
  } catch (const wam::Error& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}
