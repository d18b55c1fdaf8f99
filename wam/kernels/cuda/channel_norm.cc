#include "wam/kernels/cuda/channel_norm.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const DType dtype = s.inputs[0].dtype;
  const int64_t rows = s.inputs[0].shape.num_rows(), channels = s.inputs[0].shape[-1];
  const bool silu = s.attrs.flag("silu");
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_channel_norm(dtype, rows, channels, silu, io.inputs[0], io.inputs[1],
                              io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef channel_norm_cuda;
const KernelDef channel_norm_cuda = {.op = "channel_norm", .create = create};

}  // namespace wam
