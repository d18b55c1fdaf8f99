#include "wam/kernels/cpu/rope.h"

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create_rope(const KernelSignature& s) {
  const Shape& x = s.inputs[0].shape;
  const int64_t width = x[-1], length = x[-2], rows = x.num_rows();
  const int64_t heads = s.attrs.integer("heads");
  const bool inverse = s.attrs.flag("inverse");
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T *in = io.in<T>(0), *table = io.in<T>(1);
      T* out = io.out<T>(0);
      const int64_t d = width / heads;
      cpu::parallel_for(rows, cpu::row_grain(width), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          cpu::rope_row(in + row * width, table + (row % length) * d, heads, d, inverse,
                        out + row * width);
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef rope_cpu;
const KernelDef rope_cpu = {.op = "rope", .create = create_rope};

}  // namespace wam
