#include "wam/kernels/cpu/blocks.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const auto dim = static_cast<int>(s.attrs.integer("dim"));
  const int64_t size = s.attrs.integer("size");
  const auto [outer, bytes] = cpu::dim_blocks(s.outputs[0], dim);
  const int64_t count = outer * size, unit = bytes;
  return cpu::dispatch_bits(s.outputs[0].dtype, [&]<typename T>() {
    const int64_t elements = unit / static_cast<int64_t>(sizeof(T));
    return cpu::make_kernel([=](const KernelIo& io) {
      const T* x = io.in<T>(0);
      T* y = io.out<T>(0);
      cpu::parallel_for(count, cpu::row_grain(elements), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* from = x + i / size * elements;
          for (int64_t k = 0; k < elements; ++k) y[i * elements + k] = from[k];
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef broadcast_dim_cpu;
const KernelDef broadcast_dim_cpu = {.op = "broadcast_dim", .create = create};

}  // namespace wam
