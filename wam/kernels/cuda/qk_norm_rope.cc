#include "wam/kernels/cuda/qk_rows.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

cuda::QkRows rows_of(const KernelSignature& s, size_t x_index) {
  const Shape& x = s.inputs[x_index].shape;
  const int64_t parts = s.attrs.integer("parts"), normed = s.attrs.integer("normed");
  WAM_CHECK(normed <= cuda::kMostNormed) << normed << " normalised parts";
  return {.rows = x.num_rows(),
          .length = x[1],
          .parts = parts,
          .width = x[2] / parts,
          .normed = normed,
          .heads = s.attrs.integer("heads"),
          .eps = static_cast<float>(s.attrs.real("eps"))};
}

// Weights and table follow x.
void fill(cuda::QkRows& args, const KernelIo& io, size_t x_index, bool rope) {
  const auto normed = static_cast<size_t>(args.normed);
  for (size_t i = 0; i < normed; ++i) args.weights[i] = io.inputs[x_index + 1 + i];
  args.table = rope ? io.in<float>(x_index + 1 + normed) : nullptr;
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const DType dtype = s.inputs[0].dtype;
  const bool rope = s.attrs.flag("rope");
  return cuda::make_kernel([dtype, rope, args = rows_of(s, 0)](const KernelIo& io) mutable {
    fill(args, io, 0, rope);
    cuda::launch_qk_rows_forward(dtype, args, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const DType dtype = s.inputs[0].dtype;
  const bool rope = s.attrs.flag("rope");
  const bool bias_grad = s.attrs.flag("bias_grad");
  const size_t x = s.attrs.flag("two_grads") ? 2 : 1;
  return cuda::make_kernel([=, args = rows_of(s, x)](const KernelIo& io) mutable {
    fill(args, io, x, rope);
    cuda::QkRowsGrad grad{.dy = io.inputs[0],
                          .x = io.inputs[x],
                          .dy2 = x == 2 ? io.inputs[1] : nullptr,
                          .dx = io.outputs[0],
                          .workspace = io.workspace};
    for (int64_t i = 0; i < args.normed; ++i) {
      grad.dweights[i] = io.out<float>(static_cast<size_t>(i) + 1);
    }
    if (bias_grad) grad.dcolumns = io.out<float>(static_cast<size_t>(args.normed) + 1);
    cuda::launch_qk_rows_backward(dtype, args, grad, cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef qk_norm_rope_cuda, qk_norm_rope_grad_cuda;
const KernelDef qk_norm_rope_cuda = {.op = "qk_norm_rope", .create = create};
const KernelDef qk_norm_rope_grad_cuda = {.op = "qk_norm_rope_grad", .create = create_grad};

}  // namespace wam
