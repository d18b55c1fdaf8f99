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

// Filters, then x if its channels need padding, behind each other in the workspace.
void run_on_tensor_cores(const ConvSizes& z, const ConvTiling& tiling, ConvOperands operands,
                         cudaStream_t stream) {
  const int64_t width = conv_padded_channels(z.channels);
  auto* packed = static_cast<std::byte*>(operands.workspace);
  launch_pack_filters(z.out_channels, z.channels, z.taps(), width, operands.weight, packed, stream);
  operands.weight = packed;
  if (width != z.channels) {
    std::byte* padded = packed + conv_filter_bytes(z.out_channels, z.channels, z.taps());
    launch_pad_channels(z.in_rows(), z.channels, width, operands.x, padded, stream);
    operands.x = padded;
  }
  launch_hopper_conv3d(z, tiling, operands, stream);
}

}  // namespace
}  // namespace cuda

namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const DType dtype = s.inputs[0].dtype;
  cuda::check_float(dtype);
  const cuda::ConvSizes z = cuda::conv_sizes(s);
  const bool empty = s.outputs[0].shape.num_elements() == 0;
  const bool tensor_cores = !empty && cuda::conv_on_tensor_cores(dtype, z.out_channels) &&
                            z.channels > 0 && cuda::is_hopper();
  const cuda::ConvTiling tiling = tensor_cores ? cuda::conv_tiling(z) : cuda::ConvTiling{};
  return cuda::make_kernel([=](const KernelIo& io) {
    if (empty) return;
    const cuda::ConvOperands operands{.x = io.inputs[0],
                                      .weight = io.inputs[1],
                                      .bias = io.inputs[2],
                                      .residual = io.inputs.size() == 4 ? io.inputs[3] : nullptr,
                                      .y = io.outputs[0],
                                      .workspace = io.workspace};
    if (tensor_cores) {
      cuda::run_on_tensor_cores(z, tiling, operands, cuda::stream_of(io));
    } else {
      cuda::launch_plain_conv3d(z, dtype, operands, cuda::stream_of(io));
    }
  });
}

}  // namespace

extern const KernelDef conv3d_cuda;
const KernelDef conv3d_cuda = {.op = "conv3d", .create = create};

}  // namespace wam
