#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const DType dtype = s.inputs[0].dtype;
  const int64_t count = s.inputs[0].shape.num_elements();
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_sum_squares(dtype, io.inputs[0], count, io.out<float>(0), io.workspace,
                             cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef sum_squares_cuda;
const KernelDef sum_squares_cuda = {.op = "sum_squares", .create = create};

}  // namespace wam
