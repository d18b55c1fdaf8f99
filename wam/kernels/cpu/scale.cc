#include "wam/kernels/cpu/binary.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& signature) {
  const double factor = signature.attrs.real("factor"), offset = signature.attrs.real("offset");
  return cpu::make_unary(signature, [=](auto x) {
    using T = decltype(x);
    return static_cast<T>(factor) * x + static_cast<T>(offset);
  });
}

}  // namespace

extern const KernelDef scale_cpu;
const KernelDef scale_cpu = {.op = "scale", .create = create};

}  // namespace wam
