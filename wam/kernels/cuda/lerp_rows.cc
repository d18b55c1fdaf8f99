#include "wam/kernels/cuda/edges.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const cuda::LerpRows args{s.inputs[0].dtype, x[0], x[1], x[2], s.inputs[2].shape[1]};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_lerp_rows(args, io.inputs[0], io.inputs[1], io.in<float>(2), io.in<int32_t>(3),
                           io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef lerp_rows_cuda;
const KernelDef lerp_rows_cuda = {.op = "lerp_rows", .create = create};

}  // namespace wam
