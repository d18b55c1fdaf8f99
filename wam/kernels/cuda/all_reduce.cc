#include "wam/kernels/collective.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t count = s.outputs[0].shape.num_elements(), bytes = s.outputs[0].size_bytes();
  return cuda::make_kernel(
      [=, group = GroupOf(s), reduction = reduction_of(s)](const KernelIo& io) {
        if (group.is_absent(io)) return cuda::copy_bytes(io, bytes);
        group(io).all_reduce(io.inputs[0], io.outputs[0], count, reduction, io.stream);
      });
}

}  // namespace

extern const KernelDef all_reduce_cuda;
const KernelDef all_reduce_cuda = {.op = "all_reduce", .create = create};

}  // namespace wam
