#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto [batch, unit] = cuda::dim_blocks(s.outputs[0], 1);
  const int64_t bytes = s.inputs[1].shape[1] * unit, offset = s.attrs.integer("offset") * unit;
  const cuda::BlockCopy copy{batch, bytes, bytes, s.outputs[0].shape[1] * unit};
  const auto total = static_cast<size_t>(s.outputs[0].size_bytes());
  return cuda::make_kernel([=](const KernelIo& io) {
    const cudaStream_t stream = cuda::stream_of(io);
    if (total > 0 && io.inputs[0] != io.outputs[0]) {
      cuda::check(
          cudaMemcpyAsync(io.outputs[0], io.inputs[0], total, cudaMemcpyDeviceToDevice, stream),
          "write_rows");
    }
    cuda::launch_copy_blocks(copy, io.inputs[1], io.out<std::byte>(0) + offset, stream);
  });
}

}  // namespace

extern const KernelDef write_rows_cuda;
const KernelDef write_rows_cuda = {.op = "write_rows", .create = create};

}  // namespace wam
