#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const Shape& x = s.inputs[0].shape;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < dim; ++i) outer *= x[i];
  for (int i = dim + 1; i < x.ndim(); ++i) inner *= x[i];
  const int64_t size = x[dim];
  const DType dtype = s.inputs[0].dtype;
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_sum_dim(dtype, io.inputs[0], outer, size, inner, io.outputs[0],
                         cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef sum_dim_cuda;
const KernelDef sum_dim_cuda = {.op = "sum_dim", .create = create};

}  // namespace wam
