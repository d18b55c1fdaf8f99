#include "wam/kernels/cuda/optimizer.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  WAM_CHECK(s.inputs[1].dtype == DType::kF32) << name(s.inputs[1].dtype);
  const double max_norm = s.attrs.real("max_norm");
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_adamw_scalars(io.in<float>(0), io.in<float>(1), max_norm, io.out<float>(0),
                               cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef adamw_scalars_cuda;
const KernelDef adamw_scalars_cuda = {.op = "adamw_scalars", .create = create};

}  // namespace wam
