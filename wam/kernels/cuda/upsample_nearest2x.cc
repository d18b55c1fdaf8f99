#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const int64_t frames = x[0] * x[1], height = x[2], width = x[3];
  const int64_t bytes = x[4] * size_bytes(s.inputs[0].dtype);
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_upsample2x(frames, height, width, bytes, io.inputs[0], io.outputs[0],
                            cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef upsample_nearest2x_cuda;
const KernelDef upsample_nearest2x_cuda = {.op = "upsample_nearest2x", .create = create};

}  // namespace wam
