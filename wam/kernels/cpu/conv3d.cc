// A convolution over time is a sum over its temporal taps of convolutions over pictures: oneDNN
// runs one tap of one output frame, on one thread, with the other taps added to it. Frames outside
// the clip are skipped rather than multiplied by zeros. The order of summation depends neither on
// the number of threads nor on how frames are shared out.
#include <omp.h>

#include <dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

struct Sizes {
  int64_t batch, time, height, width, channels;  // x
  int64_t out_time, out_height, out_width, out_channels;
  int64_t kernel_time, kernel_height, kernel_width;
  int64_t stride_time, stride_height, stride_width;
  int64_t pad_time, pad_top, pad_bottom, pad_left, pad_right;

  int64_t frame() const { return height * width * channels; }
  int64_t out_frame() const { return out_height * out_width * out_channels; }
  // Input frame of a tap of an output frame; outside [0, time) it is padding.
  int64_t input_frame(int64_t out_t, int64_t tap) const {
    return out_t * stride_time - pad_time + tap;
  }
};

Sizes sizes_of(const KernelSignature& s) {
  const Shape &x = s.inputs[0].shape, &w = s.inputs[1].shape, &y = s.outputs[0].shape;
  const std::vector<int64_t>&stride = s.attrs.integers("stride"), &pad = s.attrs.integers("pad");
  return {x[0], x[1], x[2],      x[3],      x[4],      y[1],   y[2],   y[3],   y[4],   w[2],
          w[3], w[4], stride[0], stride[1], stride[2], pad[0], pad[2], pad[3], pad[4], pad[5]};
}

// oneDNN chooses blockings by the number of threads it sees when a primitive is made.
class OneThread {
 public:
  OneThread() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(saved_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int saved_;
};

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(engine());
  return stream;
}

// Scratch of the primitives, one for each thread, which grows on the first runs only.
void* thread_scratch(size_t bytes) {
  thread_local std::vector<std::byte> scratch;
  constexpr size_t kAlignment = 64;
  if (scratch.size() < bytes + kAlignment) scratch.resize(bytes + kAlignment);
  const auto address = reinterpret_cast<uintptr_t>(scratch.data());
  return scratch.data() + (kAlignment - address % kAlignment) % kAlignment;
}

using MemoryDesc = dnnl::memory::desc;
using ConvDesc = dnnl::convolution_forward::primitive_desc;

ConvDesc picture_conv(const Sizes& z, const MemoryDesc& weights, bool first) {
  using Tag = dnnl::memory::format_tag;
  constexpr auto kFloat = dnnl::memory::data_type::f32;
  const MemoryDesc src({1, z.channels, z.height, z.width}, kFloat, Tag::nhwc);
  const MemoryDesc dst({1, z.out_channels, z.out_height, z.out_width}, kFloat, Tag::nhwc);
  const MemoryDesc bias = first ? MemoryDesc({z.out_channels}, kFloat, Tag::a) : MemoryDesc();
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, src, weights, bias,
      dst, {z.stride_height, z.stride_width}, {z.pad_top, z.pad_left}, {z.pad_bottom, z.pad_right});
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!first) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attr.set_post_ops(sum);
  }
  return ConvDesc(desc, attr, engine());
}

ConvDesc first_tap_conv(const Sizes& z) {
  const MemoryDesc any({z.out_channels, z.channels, z.kernel_height, z.kernel_width},
                       dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
  return picture_conv(z, any, /*first=*/true);
}

// One tap's weights inside [O, C, kt, kh, kw].
MemoryDesc stored_tap(const Sizes& z) {
  const int64_t area = z.kernel_height * z.kernel_width, volume = z.kernel_time * area;
  return MemoryDesc({z.out_channels, z.channels, z.kernel_height, z.kernel_width},
                    dnnl::memory::data_type::f32, {z.channels * volume, volume, z.kernel_width, 1});
}

// Elements between the packed weights of two taps, a multiple of 64 bytes.
int64_t packed_tap_elements(const ConvDesc& desc) {
  const auto elements = static_cast<int64_t>(desc.weights_desc().get_size() / sizeof(float));
  return (elements + 15) / 16 * 16;
}

// A convolution of float pictures, prepared.
struct FloatConv {
  explicit FloatConv(const Sizes& sizes)
      : z(sizes),
        first_desc(first_tap_conv(sizes)),
        rest_desc(picture_conv(sizes, first_desc.weights_desc(), /*first=*/false)),
        first(first_desc),
        rest(rest_desc),
        stored(stored_tap(sizes)),
        reorder(
            dnnl::reorder::primitive_desc(engine(), stored, engine(), first_desc.weights_desc())) {}

  int64_t tap_elements() const { return packed_tap_elements(first_desc); }

  void reorder_tap(const float* weights, int64_t tap, float* packed) const {
    const float* from = weights + tap * z.kernel_height * z.kernel_width;
    dnnl::memory source(stored, engine(), const_cast<float*>(from));
    dnnl::memory target(first_desc.weights_desc(), engine(), packed + tap * tap_elements());
    reorder.execute(thread_stream(), source, target);
  }

  // Output frame `out_t` of the sample that starts at x; y is the frame's place.
  void frame(const float* x, int64_t out_t, const float* packed, const float* bias,
             float* y) const {
    bool is_first = true;
    for (int64_t tap = 0; tap < z.kernel_time; ++tap) {
      const int64_t t = z.input_frame(out_t, tap);
      if (t < 0 || t >= z.time) continue;
      run(is_first, x + t * z.frame(), packed + tap * tap_elements(), bias, y);
      is_first = false;
    }
  }

 private:
  void run(bool is_first, const float* x, const float* weights, const float* bias, float* y) const {
    const ConvDesc& desc = is_first ? first_desc : rest_desc;
    const auto memory = [](const MemoryDesc& md, const float* data) {
      return dnnl::memory(md, engine(), const_cast<float*>(data));
    };
    const MemoryDesc scratch = desc.scratchpad_desc();
    std::unordered_map<int, dnnl::memory> args = {
        {DNNL_ARG_SRC, memory(desc.src_desc(), x)},
        {DNNL_ARG_WEIGHTS, memory(desc.weights_desc(), weights)},
        {DNNL_ARG_DST, memory(desc.dst_desc(), y)},
        {DNNL_ARG_SCRATCHPAD, dnnl::memory(scratch, engine(), thread_scratch(scratch.get_size()))}};
    if (is_first) args.insert({DNNL_ARG_BIAS, memory(desc.bias_desc(), bias)});
    (is_first ? first : rest).execute(thread_stream(), args);
  }

  Sizes z;
  ConvDesc first_desc, rest_desc;
  dnnl::convolution_forward first, rest;
  MemoryDesc stored;
  dnnl::reorder reorder;
};

std::unique_ptr<Kernel> create_float(const Sizes& z) {
  const OneThread guard;
  const auto conv = std::make_shared<const FloatConv>(z);
  return cpu::make_kernel([=](const KernelIo& io) {
    const float* residual = io.inputs.size() == 4 ? io.in<float>(3) : nullptr;
    const float *x = io.in<float>(0), *weights = io.in<float>(1), *bias = io.in<float>(2);
    float *packed = static_cast<float*>(io.workspace), *y = io.out<float>(0);
    cpu::parallel_items(z.kernel_time,
                        [&](int64_t tap) { conv->reorder_tap(weights, tap, packed); });
    cpu::parallel_items(z.batch * z.out_time, [&](int64_t item) {
      float* frame = y + item * z.out_frame();
      conv->frame(x + item / z.out_time * z.time * z.frame(), item % z.out_time, packed, bias,
                  frame);
      if (residual == nullptr) return;
      for (int64_t i = 0; i < z.out_frame(); ++i) frame[i] += residual[item * z.out_frame() + i];
    });
  });
}

// Plain loops, the reference.
double output_at(const Sizes& z, const double* x, const double* w, int64_t out_t, int64_t row,
                 int64_t col) {
  double sum = 0;
  const int64_t area = z.kernel_height * z.kernel_width;
  for (int64_t tap = 0; tap < z.kernel_time; ++tap) {
    const int64_t t = z.input_frame(out_t, tap);
    if (t < 0 || t >= z.time) continue;
    for (int64_t k = 0; k < area; ++k) {
      const int64_t h = row * z.stride_height - z.pad_top + k / z.kernel_width;
      const int64_t v = col * z.stride_width - z.pad_left + k % z.kernel_width;
      if (h < 0 || h >= z.height || v < 0 || v >= z.width) continue;
      const double* pixel = x + t * z.frame() + (h * z.width + v) * z.channels;
      for (int64_t c = 0; c < z.channels; ++c)
        sum += pixel[c] * w[(c * z.kernel_time + tap) * area + k];
    }
  }
  return sum;
}

std::unique_ptr<Kernel> create_double(const Sizes& z) {
  const int64_t filter = z.channels * z.kernel_time * z.kernel_height * z.kernel_width;
  return cpu::make_kernel([=](const KernelIo& io) {
    const double *x = io.in<double>(0), *w = io.in<double>(1), *bias = io.in<double>(2);
    const double* residual = io.inputs.size() == 4 ? io.in<double>(3) : nullptr;
    cpu::parallel_items(z.batch * z.out_time * z.out_height, [&](int64_t item) {
      const int64_t row = item % z.out_height, t = item / z.out_height % z.out_time;
      const double* sample = x + item / z.out_height / z.out_time * z.time * z.frame();
      double* y = io.out<double>(0) + item * z.out_width * z.out_channels;
      for (int64_t col = 0; col < z.out_width; ++col) {
        for (int64_t o = 0; o < z.out_channels; ++o) {
          const double more = residual == nullptr ? 0 : residual[y - io.out<double>(0)];
          *y++ = bias[o] + output_at(z, sample, w + o * filter, t, row, col) + more;
        }
      }
    });
  });
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  return s.outputs[0].dtype == DType::kF64 ? create_double(sizes_of(s)) : create_float(sizes_of(s));
}

// The weights in oneDNN's layout.
int64_t workspace_bytes(const KernelSignature& s) {
  if (s.outputs[0].dtype == DType::kF64) return 0;
  const OneThread guard;
  const Sizes z = sizes_of(s);
  return z.kernel_time * packed_tap_elements(first_tap_conv(z)) * size_bytes(DType::kF32);
}

}  // namespace

extern const KernelDef conv3d_cpu;
const KernelDef conv3d_cpu = {.op = "conv3d", .create = create, .workspace_bytes = workspace_bytes};

}  // namespace wam
