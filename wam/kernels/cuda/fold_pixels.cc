#include "wam/kernels/cuda/pictures.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const cuda::FoldPixels args{x[0] * x[1], x[2], x[3], x[4], s.inputs[0].dtype, s.outputs[0].dtype};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_fold_pixels(args, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef fold_pixels_cuda;
const KernelDef fold_pixels_cuda = {.op = "fold_pixels", .create = create};

}  // namespace wam
