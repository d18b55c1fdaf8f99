#include "wam/kernels/cuda/optimizer.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  WAM_CHECK(s.inputs[0].dtype == DType::kF32) << name(s.inputs[0].dtype);
  const cuda::AdamwArgs args{.count = s.outputs[0].shape.num_elements(),
                             .beta1 = s.attrs.real("beta1"),
                             .beta2 = s.attrs.real("beta2"),
                             .eps = s.attrs.real("eps"),
                             .g_dtype = s.inputs[3].dtype};
  return cuda::make_kernel([args = args](const KernelIo& io) mutable {
    args.p = io.in<float>(0);
    args.m = io.in<float>(1);
    args.v = io.in<float>(2);
    args.g = io.inputs[3];
    args.scalars = io.in<float>(4);
    args.p_out = io.out<float>(0);
    args.m_out = io.out<float>(1);
    args.v_out = io.out<float>(2);
    cuda::launch_adamw(args, cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef adamw_cuda;
const KernelDef adamw_cuda = {.op = "adamw", .create = create};

}  // namespace wam
