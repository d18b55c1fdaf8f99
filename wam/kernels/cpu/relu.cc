#include "wam/kernels/cpu/activations.h"
#include "wam/kernels/cpu/binary.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& signature) {
  return cpu::make_unary(signature, [](auto x) { return cpu::relu(x); });
}

std::unique_ptr<Kernel> create_grad(const KernelSignature& signature) {
  return cpu::make_binary(signature, [](auto dy, auto x) { return cpu::relu_grad(dy, x); });
}

}  // namespace

extern const KernelDef relu_cpu, relu_grad_cpu;
const KernelDef relu_cpu = {.op = "relu", .create = create};
const KernelDef relu_grad_cpu = {.op = "relu_grad", .create = create_grad};

}  // namespace wam
