#include "wam/kernels/cpu/activations.h"
#include "wam/kernels/cpu/binary.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& signature) {
  return cpu::make_unary(signature, [](auto x) { return cpu::gelu_erf(x); });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& signature) {
  return cpu::make_binary(signature, [](auto dy, auto x) { return cpu::gelu_erf_grad(dy, x); });
}

}  // namespace

extern const KernelDef gelu_erf_cpu, gelu_erf_grad_cpu;
const KernelDef gelu_erf_cpu = {.op = "gelu_erf", .create = create};
const KernelDef gelu_erf_grad_cpu = {.op = "gelu_erf_grad", .create = create_grad};

}  // namespace wam
