#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape &from = s.inputs[0].shape, &to = s.outputs[0].shape;
  const cuda::RowMove move{.batch = to[0],
                           .moved = s.inputs[1].shape[0],
                           .x_rows = from[1],
                           .y_rows = to[1],
                           .bytes = cuda::dim_blocks(s.outputs[0], 1).unit,
                           .put = false};
  return cuda::make_kernel([=](const KernelIo& io) {
    const cudaStream_t stream = cuda::stream_of(io);
    cuda::launch_move_rows(move, io.inputs[0], io.in<int32_t>(1), io.outputs[0], stream);
  });
}

}  // namespace

extern const KernelDef take_rows_cuda;
const KernelDef take_rows_cuda = {.op = "take_rows", .create = create};

}  // namespace wam
