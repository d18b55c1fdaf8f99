#include "wam/kernels/cuda/edges.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& y = s.outputs[0].shape;
  const DType dtype = s.inputs[0].dtype;
  const int64_t heads = y[0], queries = y[1], keys = y[2];
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_relative_bias(dtype, io.inputs[0], io.in<int32_t>(1), heads, queries, keys,
                               io.out<float>(0), cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef relative_bias_cuda;
const KernelDef relative_bias_cuda = {.op = "relative_bias", .create = create};

}  // namespace wam
