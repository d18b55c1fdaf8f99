#include "wam/kernels/cuda/support.h"
#include "wam/kernels/cuda/token_norm.h"

namespace wam {
namespace {

// One long sample: nothing depends on the sample.
cuda::TokenSizes sizes_of(const Shape& x) { return {1, x.num_rows(), x[-1], 1}; }

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::TokenSizes sizes = sizes_of(s.inputs[0].shape);
  const DType dtype = s.inputs[0].dtype;
  const bool affine = s.attrs.flag("affine");
  const auto eps = static_cast<float>(s.attrs.real("eps"));
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_token_norm_forward(dtype,
                                    {.sizes = sizes,
                                     .eps = eps,
                                     .x = io.inputs[0],
                                     .weight = affine ? io.inputs[1] : nullptr,
                                     .bias = affine ? io.inputs[2] : nullptr,
                                     .h = io.outputs[0],
                                     .stats = io.out<float>(1)},
                                    cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const cuda::TokenSizes sizes = sizes_of(s.inputs[1].shape);
  const DType dtype = s.inputs[0].dtype;
  const bool affine = s.attrs.flag("affine");
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_token_norm_backward(dtype,
                                     {.sizes = sizes,
                                      .dh = io.inputs[0],
                                      .x = io.inputs[1],
                                      .stats = io.in<float>(2),
                                      .weight = affine ? io.inputs[3] : nullptr,
                                      .dx = io.outputs[0],
                                      .dweight = affine ? io.out<float>(1) : nullptr,
                                      .dbias = affine ? io.out<float>(2) : nullptr,
                                      .workspace = io.workspace},
                                     cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef layer_norm_cuda, layer_norm_grad_cuda;
const KernelDef layer_norm_cuda = {.op = "layer_norm", .create = create};
const KernelDef layer_norm_grad_cuda = {.op = "layer_norm_grad", .create = create_grad};

}  // namespace wam
