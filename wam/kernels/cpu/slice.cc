#include "wam/kernels/cpu/blocks.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const auto [outer, unit] = cpu::dim_blocks(s.inputs[0], dim);
  const int64_t bytes = s.outputs[0].shape[dim] * unit;
  const cpu::BlockCopy copy{outer, bytes, s.inputs[0].shape[dim] * unit, bytes};
  const int64_t offset = s.attrs.integer("begin") * unit;
  return cpu::make_kernel([=](const KernelIo& io) {
    cpu::copy_blocks(copy, io.in<std::byte>(0) + offset, io.out<std::byte>(0));
  });
}

}  // namespace

extern const KernelDef slice_cpu;
const KernelDef slice_cpu = {.op = "slice", .create = create};

}  // namespace wam
