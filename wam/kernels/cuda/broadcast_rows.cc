#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t bytes = s.inputs[0].size_bytes();
  const cuda::RowRepeat repeat{bytes == 0 ? 0 : s.outputs[0].size_bytes() / bytes, 1, 1, bytes};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_repeat_rows(repeat, io.inputs[0], io.outputs[0], cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef broadcast_rows_cuda;
const KernelDef broadcast_rows_cuda = {.op = "broadcast_rows", .create = create};

}  // namespace wam
