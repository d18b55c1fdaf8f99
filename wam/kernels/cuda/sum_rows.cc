#include "wam/kernels/cuda/reductions.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t columns = s.outputs[0].shape.num_elements();
  const cuda::ColumnSums sums{.dtype = s.inputs[0].dtype,
                              .rows = columns == 0 ? 0 : s.inputs[0].shape.num_elements() / columns,
                              .columns = columns,
                              .out_dtype = s.outputs[0].dtype};
  return cuda::make_kernel([sums](const KernelIo& io) {
    cuda::ColumnSums args = sums;
    args.x = io.inputs[0];
    args.out = io.outputs[0];
    args.workspace = io.workspace;
    cuda::launch_column_sums(args, cuda::stream_of(io));
  });
}

}  // namespace

extern const KernelDef sum_rows_cuda;
const KernelDef sum_rows_cuda = {.op = "sum_rows", .create = create};

}  // namespace wam
