#include "wam/kernels/cuda/elementwise.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const DType from = s.inputs[0].dtype, to = s.outputs[0].dtype;
  const int64_t count = s.outputs[0].shape.num_elements();
  cuda::check_float(from);
  cuda::check_float(to);
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_cast(from, to, count, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef cast_cuda;
const KernelDef cast_cuda = {.op = "cast", .create = create};

}  // namespace wam
