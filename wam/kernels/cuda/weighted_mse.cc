#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

// `first` is the index of pred among the inputs.
cuda::WeightedMseArgs args_of(const KernelSignature& s, size_t first) {
  const Shape& pred = s.inputs[first].shape;
  return {.pred_dtype = s.inputs[first].dtype,
          .target_dtype = s.inputs[first + 1].dtype,
          .batch = pred[0],
          .length = pred[1],
          .width = pred[2],
          .num_rows = s.inputs[first + 2].shape[1],
          .scale = static_cast<float>(s.attrs.real("scale"))};
}

void fill(cuda::WeightedMseArgs& args, const KernelIo& io, size_t first) {
  args.pred = io.inputs[first];
  args.target = io.inputs[first + 1];
  args.row_weight = io.in<float>(first + 2);
  args.index = io.in<int32_t>(first + 3);
  args.mask = io.inputs.size() > first + 4 ? io.in<float>(first + 4) : nullptr;
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  return cuda::make_kernel([args = args_of(s, 0)](const KernelIo& io) mutable {
    fill(args, io, 0);
    cuda::launch_weighted_mse(args, io.out<float>(0), io.workspace, cuda::stream_of(io));
  });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  return cuda::make_kernel([args = args_of(s, 1)](const KernelIo& io) mutable {
    fill(args, io, 1);
    cuda::launch_weighted_mse_grad(args, io.in<float>(0), io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef weighted_mse_cuda, weighted_mse_grad_cuda;
const KernelDef weighted_mse_cuda = {.op = "weighted_mse", .create = create};
const KernelDef weighted_mse_grad_cuda = {.op = "weighted_mse_grad", .create = create_grad};

}  // namespace wam
