#include "wam/kernels/collective.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t bytes = s.inputs[0].size_bytes();
  return cuda::make_kernel([=, group = GroupOf(s)](const KernelIo& io) {
    if (group.is_absent(io)) return cuda::copy_bytes(io, bytes);
    group(io).all_gather(io.inputs[0], io.outputs[0], bytes, io.stream);
  });
}

}  // namespace

extern const KernelDef all_gather_cuda;
const KernelDef all_gather_cuda = {.op = "all_gather", .create = create};

}  // namespace wam
