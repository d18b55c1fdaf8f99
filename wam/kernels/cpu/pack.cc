#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// A stretch of the output in bytes: of input `input`, or zeros (-1).
struct Stretch {
  int64_t begin, bytes;
  int64_t input;
};

std::vector<Stretch> stretches_of(const KernelSignature& s) {
  const std::vector<int64_t> offsets = s.attrs.integers("offsets");
  const int64_t element = size_bytes(s.outputs[0].dtype);
  std::vector<Stretch> stretches;
  int64_t end = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const int64_t begin = offsets[i] * element;
    if (begin > end) stretches.push_back({end, begin - end, -1});
    stretches.push_back({begin, s.inputs[i].size_bytes(), static_cast<int64_t>(i)});
    end = begin + s.inputs[i].size_bytes();
  }
  const int64_t size = s.outputs[0].size_bytes();
  if (size > end) stretches.push_back({end, size - end, -1});
  return stretches;
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  return cpu::make_kernel([stretches = stretches_of(s)](const KernelIo& io) {
    for (const Stretch& stretch : stretches) {
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
