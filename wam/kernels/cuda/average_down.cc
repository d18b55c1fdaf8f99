#include "wam/kernels/cuda/pictures.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const cuda::AverageDown args{s.inputs[0].dtype,
                               x[0],
                               x[1],
                               x[2],
                               x[3],
                               x[4],
                               s.outputs[0].shape[4],
                               s.attrs.integer("ft"),
                               s.attrs.integer("fs")};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_average_down(args, io.inputs[0], io.inputs[1], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef average_down_cuda;
const KernelDef average_down_cuda = {.op = "average_down", .create = create};

}  // namespace wam
