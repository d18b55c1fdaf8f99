#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const auto [outer, unit] = cuda::dim_blocks(s.inputs[0], dim);
  const int64_t bytes = s.inputs[0].shape[dim] * unit, offset = s.attrs.integer("before") * unit;
  const cuda::BlockCopy copy{outer, bytes, bytes, s.outputs[0].shape[dim] * unit};
  const auto total = static_cast<size_t>(s.outputs[0].size_bytes());
  return cuda::make_kernel([=](const KernelIo& io) {
    const cudaStream_t stream = cuda::stream_of(io);
    if (total > 0) cuda::check(cudaMemsetAsync(io.outputs[0], 0, total, stream), "pad_zeros");
    cuda::launch_copy_blocks(copy, io.inputs[0], io.out<std::byte>(0) + offset, stream);
  });
}

}  // namespace

extern const KernelDef pad_zeros_cuda;
const KernelDef pad_zeros_cuda = {.op = "pad_zeros", .create = create};

}  // namespace wam
