#include "wam/kernels/cuda/support.h"
#include "wam/kernels/cuda/token_norm.h"

namespace wam {
namespace {

cuda::TokenSizes sizes_of(const Shape& x, const Shape& table) {
  return {x[0], x[1], x[2], table[1]};
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::TokenSizes sizes = sizes_of(s.inputs[0].shape, s.inputs[1].shape);
  const DType dtype = s.inputs[0].dtype;
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_token_norm_forward(dtype,
                                    {.sizes = sizes,
                                     .normalize = false,
                                     .o = io.inputs[0],
                                     .gate = io.in<float>(1),
                                     .index = io.in<int32_t>(2),
                                     .x_out = io.outputs[0]},
                                    cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const cuda::TokenSizes sizes = sizes_of(s.inputs[1].shape, s.inputs[2].shape);
  const DType dtype = s.inputs[0].dtype;
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_token_norm_backward(dtype,
                                     {.sizes = sizes,
                                      .normalize = false,
                                      .dx_out = io.inputs[0],
                                      .o = io.inputs[1],
                                      .gate = io.in<float>(2),
                                      .index = io.in<int32_t>(3),
                                      .d_o = io.outputs[0],
                                      .dgate = io.out<float>(1),
                                      .workspace = io.workspace},
                                     cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef gate_cuda, gate_grad_cuda;
const KernelDef gate_cuda = {.op = "gate", .create = create};
const KernelDef gate_grad_cuda = {.op = "gate_grad", .create = create_grad};

}  // namespace wam
