#include "wam/kernels/cuda/edges.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  WAM_CHECK(s.inputs[0].dtype == DType::kF32) << name(s.inputs[0].dtype);
  const Shape& y = s.outputs[0].shape;
  const cuda::ModulationTable args{y[0], y[1] * y[2], y[3], s.inputs[1].dtype};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_modulation_table(args, io.in<float>(0), io.inputs[1], io.out<float>(0),
                                  cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef modulation_table_cuda;
const KernelDef modulation_table_cuda = {.op = "modulation_table", .create = create};

}  // namespace wam
