#include "wam/kernels/cuda/moves.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cuda::RowMove move{.batch = 1,
                           .moved = s.inputs[0].shape.num_elements(),
                           .x_rows = s.inputs[1].shape[0],
                           .y_rows = s.inputs[0].shape.num_elements(),
                           .bytes = s.inputs[1].shape[1] * size_bytes(s.inputs[1].dtype),
                           .put = false};
  return cuda::make_kernel([=](const KernelIo& io) {
    cuda::launch_move_rows(move, io.inputs[1], io.in<int32_t>(0), io.outputs[0],
                           cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef embedding_cuda;
const KernelDef embedding_cuda = {.op = "embedding", .create = create};

}  // namespace wam
