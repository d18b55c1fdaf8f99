#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const int64_t size = s.attrs.integer("size");
  const auto [outer, unit] = cuda::dim_blocks(s.outputs[0], dim);
  const cuda::RowRepeat repeat{outer * size, std::max<int64_t>(size, 1),
                               std::max<int64_t>(outer, 1), unit};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_repeat_rows(repeat, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef broadcast_dim_cuda;
const KernelDef broadcast_dim_cuda = {.op = "broadcast_dim", .create = create};

}  // namespace wam
