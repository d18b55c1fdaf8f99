#include "wam/kernels/cpu/activations.h"
#include "wam/kernels/cpu/binary.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& signature) {
  return cpu::make_unary(signature, [](auto x) { return cpu::gelu_tanh(x); });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& signature) {
  return cpu::make_binary(signature, [](auto dy, auto x) { return cpu::gelu_tanh_grad(dy, x); });
}

}  // namespace

extern const KernelDef gelu_tanh_cpu, gelu_tanh_grad_cpu;
const KernelDef gelu_tanh_cpu = {.op = "gelu_tanh", .create = create};
const KernelDef gelu_tanh_grad_cpu = {.op = "gelu_tanh_grad", .create = create_grad};

}  // namespace wam
