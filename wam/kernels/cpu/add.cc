#include "wam/kernels/cpu/binary.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& signature) {
  return cpu::make_binary(signature, [](auto x, auto y) { return x + y; });
}

}  // namespace

extern const KernelDef add_cpu;
const KernelDef add_cpu = {.op = "add", .create = create};

}  // namespace wam
