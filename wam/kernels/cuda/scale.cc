#include "wam/kernels/cuda/elementwise.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::UnaryArgs args{
      cuda::Unary::kScale, s.outputs[0].dtype, s.outputs[0].shape.num_elements(),
      static_cast<float>(s.attrs.real("factor")), static_cast<float>(s.attrs.real("offset"))};
  return cuda::make_kernel([args](const KernelIo& io) {
    cuda::launch_unary(args, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef scale_cuda;
const KernelDef scale_cuda = {.op = "scale", .create = create};

}  // namespace wam
