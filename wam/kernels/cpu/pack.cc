#include <cstring>

#include "wam/kernels/cpu/support.h"
#include "wam/kernels/pack.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  return cpu::make_kernel([stretches = pack_stretches(s)](const KernelIo& io) {
    for (const PackStretch& stretch : stretches) {
      std::byte* to = io.out<std::byte>(0) + stretch.begin;
      const auto bytes = static_cast<size_t>(stretch.bytes);
      if (stretch.input < 0) {
        std::memset(to, 0, bytes);
      } else if (io.inputs[static_cast<size_t>(stretch.input)] != to) {
        std::memcpy(to, io.inputs[static_cast<size_t>(stretch.input)], bytes);
      }
    }
  });
}

}  // namespace

extern const KernelDef pack_cpu;
const KernelDef pack_cpu = {.op = "pack", .create = create};

}  // namespace wam
