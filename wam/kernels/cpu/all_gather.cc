#include "wam/kernels/cpu/collective.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t bytes = s.inputs[0].size_bytes();
  return cpu::make_kernel([bytes, group = cpu::GroupOf(s)](const KernelIo& io) {
    if (group.is_single()) return cpu::copy_bytes(io, bytes);
    group(io).all_gather(io.inputs[0], io.outputs[0], bytes, nullptr);
  });
}

}  // namespace

extern const KernelDef all_gather_cpu;
const KernelDef all_gather_cpu = {.op = "all_gather", .create = create};

}  // namespace wam
