#include <cstring>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const int64_t rows = x[0] * x[1] * x[2], width = x[3];
  const int64_t pixel = x[4] * size_bytes(s.inputs[0].dtype);  // bytes
  return cpu::make_kernel([=](const KernelIo& io) {
    const auto count = static_cast<size_t>(pixel);
    cpu::parallel_for(rows, cpu::row_grain(width * pixel / 4), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const std::byte* from = io.in<std::byte>(0) + row * width * pixel;
        std::byte* to = io.out<std::byte>(0) + row * 4 * width * pixel;
        for (int64_t i = 0; i < width; ++i) {
          std::memcpy(to + 2 * i * pixel, from + i * pixel, count);
          std::memcpy(to + (2 * i + 1) * pixel, from + i * pixel, count);
        }
        std::memcpy(to + 2 * width * pixel, to, static_cast<size_t>(2 * width * pixel));
      }
    });
  });
}

}  // namespace

extern const KernelDef upsample_nearest2x_cpu;
const KernelDef upsample_nearest2x_cpu = {.op = "upsample_nearest2x", .create = create};

}  // namespace wam
