#include "wam/kernels/cpu/collective.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t count = s.outputs[0].shape.num_elements(), bytes = s.outputs[0].size_bytes();
  return cpu::make_kernel([count, bytes, group = cpu::GroupOf(s),
                           reduction = cpu::reduction_of(s)](const KernelIo& io) {
    if (group.is_single()) return cpu::copy_bytes(io, bytes);
    group(io).all_reduce(io.inputs[0], io.outputs[0], count, reduction, nullptr);
  });
}

}  // namespace

extern const KernelDef all_reduce_cpu;
const KernelDef all_reduce_cpu = {.op = "all_reduce", .create = create};

}  // namespace wam
