#include "wam/kernels/cpu/blocks.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const auto [outer, unit] = cpu::dim_blocks(s.inputs[0], dim);
  const int64_t before = s.attrs.integer("before") * unit, after = s.attrs.integer("after") * unit;
  const int64_t bytes = s.inputs[0].shape[dim] * unit, total = before + bytes + after;
  const int64_t count = outer;
  return cpu::make_kernel([=](const KernelIo& io) {
    std::byte* y = io.out<std::byte>(0);
    cpu::zero_blocks({count, before, 0, total}, y);
    cpu::copy_blocks({count, bytes, bytes, total}, io.in<std::byte>(0), y + before);
    cpu::zero_blocks({count, after, 0, total}, y + before + bytes);
  });
}

}  // namespace

extern const KernelDef pad_zeros_cpu;
const KernelDef pad_zeros_cpu = {.op = "pad_zeros", .create = create};

}  // namespace wam
