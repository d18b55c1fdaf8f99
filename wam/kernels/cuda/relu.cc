#include "wam/kernels/cuda/elementwise.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::UnaryArgs args{cuda::Unary::kRelu, s.outputs[0].dtype,
                             s.outputs[0].shape.num_elements()};
  return cuda::make_kernel([args](const KernelIo& io) {
    cuda::launch_unary(args, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const int64_t count = s.outputs[0].shape.num_elements();
  const cuda::BinaryArgs args{cuda::Binary::kReluGrad, s.outputs[0].dtype, count, count};
  return cuda::make_kernel([args](const KernelIo& io) {
    cuda::launch_binary(args, io.inputs[0], io.inputs[1], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef relu_cuda, relu_grad_cuda;
const KernelDef relu_cuda = {.op = "relu", .create = create};
const KernelDef relu_grad_cuda = {.op = "relu_grad", .create = create_grad};

}  // namespace wam
