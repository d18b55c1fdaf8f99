#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& signature) {
  const int64_t bytes = signature.outputs[0].size_bytes();
  return cpu::make_kernel([=](const KernelIo& io) {
    if (io.inputs[0] == io.outputs[0]) return;
    cpu::parallel_for(bytes, 1 << 18, [&](int64_t begin, int64_t end) {
      std::memcpy(io.out<std::byte>(0) + begin, io.in<std::byte>(0) + begin,
                  static_cast<size_t>(end - begin));
    });
  });
}

}  // namespace

extern const KernelDef copy_cpu;
const KernelDef copy_cpu = {.op = "copy", .create = create};

}  // namespace wam
