#include <vector>

#include "wam/kernels/cpu/blocks.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const auto [outer, unit] = cpu::dim_blocks(s.outputs[0], dim);
  const int64_t total = s.outputs[0].shape[dim] * unit;
  std::vector<cpu::BlockCopy> parts;
  for (const TensorType& part : s.inputs) {
    const int64_t bytes = part.shape[dim] * unit;
    parts.push_back({outer, bytes, bytes, total});
  }
  return cpu::make_kernel([parts = std::move(parts)](const KernelIo& io) {
    std::byte* y = io.out<std::byte>(0);
    for (size_t i = 0; i < parts.size(); ++i) {
      cpu::copy_blocks(parts[i], io.in<std::byte>(i), y);
      y += parts[i].bytes;
    }
  });
}

}  // namespace

extern const KernelDef concat_cpu;
const KernelDef concat_cpu = {.op = "concat", .create = create};

}  // namespace wam
