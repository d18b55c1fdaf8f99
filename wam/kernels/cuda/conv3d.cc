#include "wam/kernels/cuda/conv3d.h"

#include "wam/kernels/cuda/support.h"
#include "wam/kernels/cuda/workspace.h"

namespace wam {
namespace cuda {

ConvSizes conv_sizes(const KernelSignature& s) {
  const Shape &x = s.inputs[0].shape, &w = s.inputs[1].shape, &y = s.outputs[0].shape;
  const std::vector<int64_t>&stride = s.attrs.integers("stride"), &pad = s.attrs.integers("pad");
  ConvSizes z{.batch = x[0], .channels = x[4], .out_channels = w[0]};
  for (int d = 0; d < 3; ++d) {
    const auto at = static_cast<size_t>(2 - d);
    z.in[d] = x[3 - d];
    z.out[d] = y[3 - d];
    z.kernel[d] = w[4 - d];
    z.stride[d] = stride[at];
    z.before[d] = pad[2 * at];
  }
  return z;
}

namespace {

bool is_hopper() {
  static const bool hopper = [] {
    int device = 0, major = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
          "compute capability");
    return major == 9;
  }();
  return hopper;
}

// The product's sizes: folded, the taps along a line are channels of one tap.
ConvSizes sizes_on_tensor_cores(ConvSizes z, const ConvLayout& layout) {
  z.pixel_pitch = layout.width;
  z.line_pitch = layout.pixels;
  if (!layout.folded) return z;
  z.channels = layout.width * z.kernel[0];
  z.in[0] = z.out[0];
  z.kernel[0] = 1;
  z.before[0] = 0;
  return z;
}

// Brings operands into the layout, in the workspace: filters, then x.
struct TensorCoreConv {
  ConvSizes given, sizes;
  ConvLayout layout;
  ConvTiling tiling;

  explicit TensorCoreConv(const KernelSignature& s) : given(conv_sizes(s)), layout(conv_layout(s)) {
    sizes = sizes_on_tensor_cores(given, layout);
    tiling = conv_tiling(sizes);
  }

  void run(ConvOperands operands, cudaStream_t stream) const {
    auto* packed = static_cast<std::byte*>(operands.workspace);
    launch_pack_filters(given.out_channels, given.channels, given.taps(), layout.width,
                        operands.weight, packed, stream);
    operands.weight = packed;
    if (layout.copied) {
      std::byte* x = packed + layout.filter_bytes;
      launch_pad_pixels({.lines = given.batch * given.in[2] * given.in[1],
                         .in_pixels = given.in[0],
                         .channels = given.channels,
                         .before = layout.folded ? given.before[0] : 0,
                         .pixels = layout.pixels,
                         .width = layout.width},
                        operands.x, x, stream);
      operands.x = x;
    }
    launch_hopper_conv3d(sizes, tiling, operands, stream);
  }
};

}  // namespace
}  // namespace cuda

namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const DType dtype = s.inputs[0].dtype;
  cuda::check_float(dtype);
  const cuda::ConvSizes z = cuda::conv_sizes(s);
  if (s.outputs[0].shape.num_elements() == 0) return cuda::make_kernel([](const KernelIo&) {});
  const auto operands = [](const KernelIo& io) {
    return cuda::ConvOperands{.x = io.inputs[0],
                              .weight = io.inputs[1],
                              .bias = io.inputs[2],
                              .residual = io.inputs.size() == 4 ? io.inputs[3] : nullptr,
                              .y = io.outputs[0],
                              .workspace = io.workspace};
  };
  if (cuda::conv_on_tensor_cores(dtype, z.out_channels) && z.channels > 0 && cuda::is_hopper()) {
    return cuda::make_kernel([conv = cuda::TensorCoreConv(s), operands](const KernelIo& io) {
      conv.run(operands(io), cuda::stream_of(io));
    });
  }
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_plain_conv3d(z, dtype, operands(io), cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef conv3d_cuda;
const KernelDef conv3d_cuda = {.op = "conv3d", .create = create};

}  // namespace wam
