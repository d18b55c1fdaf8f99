#include "wam/kernels/cpu/binary.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& signature) {
  return cpu::make_binary(signature, [](auto x, auto y) { return x - y; });
}

}  // namespace

extern const KernelDef sub_cpu;
const KernelDef sub_cpu = {.op = "sub", .create = create};

}  // namespace wam
