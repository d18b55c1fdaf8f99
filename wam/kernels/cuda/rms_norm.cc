#include "wam/kernels/cuda/qk_rows.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

cuda::QkRows rows_of(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  return {.rows = x.num_rows(), .width = x[-1], .eps = static_cast<float>(s.attrs.real("eps"))};
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const DType dtype = s.inputs[0].dtype;
  return cuda::make_kernel([dtype, args = rows_of(s)](const KernelIo& io) mutable {
    args.weights[0] = io.inputs[1];
    cuda::launch_qk_rows_forward(dtype, args, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const DType dtype = s.inputs[0].dtype;
  return cuda::make_kernel([dtype, args = rows_of(s)](const KernelIo& io) mutable {
    args.weights[0] = io.inputs[2];
    cuda::launch_qk_rows_backward(dtype, args,
                                  {.dy = io.inputs[0],
                                   .x = io.inputs[1],
                                   .dx = io.outputs[0],
                                   .dweights = {io.out<float>(1)},
                                   .workspace = io.workspace},
                                  cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef rms_norm_cuda, rms_norm_grad_cuda;
const KernelDef rms_norm_cuda = {.op = "rms_norm", .create = create};
const KernelDef rms_norm_grad_cuda = {.op = "rms_norm_grad", .create = create_grad};

}  // namespace wam
