#include "wam/kernels/cuda/elementwise.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::BinaryArgs args{cuda::Binary::kAdd, s.outputs[0].dtype,
                              s.outputs[0].shape.num_elements(), s.inputs[1].shape.num_elements()};
  return cuda::make_kernel([args](const KernelIo& io) {
    cuda::launch_binary(args, io.inputs[0], io.inputs[1], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef add_cuda;
const KernelDef add_cuda = {.op = "add", .create = create};

}  // namespace wam
