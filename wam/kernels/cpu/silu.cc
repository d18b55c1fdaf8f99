#include "wam/kernels/cpu/activations.h"
#include "wam/kernels/cpu/binary.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& signature) {
  return cpu::make_unary(signature, [](auto x) { return cpu::silu(x); });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& signature) {
  return cpu::make_binary(signature, [](auto dy, auto x) { return cpu::silu_grad(dy, x); });
}

}  // namespace

extern const KernelDef silu_cpu, silu_grad_cpu;
const KernelDef silu_cpu = {.op = "silu", .create = create};
const KernelDef silu_grad_cpu = {.op = "silu_grad", .create = create_grad};

}  // namespace wam
