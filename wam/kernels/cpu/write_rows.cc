#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape &buffer = s.inputs[0].shape, &rows = s.inputs[1].shape;
  const int64_t width = buffer[2] * size_bytes(s.inputs[0].dtype);
  const int64_t batch = buffer[0], length = buffer[1], count = rows[1];
  const int64_t offset = s.attrs.integer("offset");
  return cpu::make_kernel([=](const KernelIo& io) {
    auto* out = io.out<std::byte>(0);
    if (io.inputs[0] != io.outputs[0]) {
      std::memcpy(out, io.inputs[0], static_cast<size_t>(batch * length * width));
    }
    for (int64_t b = 0; b < batch; ++b) {
      std::memcpy(out + (b * length + offset) * width, io.in<std::byte>(1) + b * count * width,
                  static_cast<size_t>(count * width));
    }
  });
}

}  // namespace

extern const KernelDef write_rows_cpu;
const KernelDef write_rows_cpu = {.op = "write_rows", .create = create};

}  // namespace wam
