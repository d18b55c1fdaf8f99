#include "wam/kernels/cuda/optimizer.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::AdamwArgs args{.count = s.outputs[0].shape.num_elements(),
                             .beta1 = s.attrs.real("beta1"),
                             .beta2 = s.attrs.real("beta2"),
                             .eps = s.attrs.real("eps"),
                             .g_dtype = s.inputs[4].dtype};
  return cuda::make_kernel([args = args](const KernelIo& io) mutable {
    args.high = io.inputs[0];
    args.low = io.inputs[1];
    args.m = io.in<float>(2);
    args.v = io.in<float>(3);
    args.g = io.inputs[4];
    args.scalars = io.in<float>(5);
    args.high_out = io.outputs[0];
    args.low_out = io.outputs[1];
    args.m_out = io.out<float>(2);
    args.v_out = io.out<float>(3);
    cuda::launch_adamw(args, cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef adamw_split_cuda;
const KernelDef adamw_split_cuda = {.op = "adamw_split", .create = create};

}  // namespace wam
