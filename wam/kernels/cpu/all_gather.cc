#include "wam/kernels/collective.h"
#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t bytes = s.inputs[0].size_bytes();
  return cpu::make_kernel([=, group = GroupOf(s)](const KernelIo& io) {
    if (group.is_absent(io)) return cpu::copy_bytes(io, bytes);
    group(io).all_gather(io.inputs[0], io.outputs[0], bytes, io.stream);
  });
}

}  // namespace

extern const KernelDef all_gather_cpu;
const KernelDef all_gather_cpu = {.op = "all_gather", .create = create};

}  // namespace wam
