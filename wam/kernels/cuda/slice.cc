#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const auto [outer, unit] = cuda::dim_blocks(s.inputs[0], dim);
  const int64_t bytes = s.outputs[0].shape[dim] * unit, offset = s.attrs.integer("begin") * unit;
  const cuda::BlockCopy copy{outer, bytes, s.inputs[0].shape[dim] * unit, bytes};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_copy_blocks(copy, io.in<std::byte>(0) + offset, io.outputs[0],
                             cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef slice_cuda;
const KernelDef slice_cuda = {.op = "slice", .create = create};

}  // namespace wam
