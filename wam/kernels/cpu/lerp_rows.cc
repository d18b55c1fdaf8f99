#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& x_shape = s.inputs[0].shape;
  const int64_t batch = x_shape[0], length = x_shape[1], n = x_shape[2];
  const int64_t table_rows = s.inputs[2].shape[1];
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const int32_t* index = io.in<int32_t>(3);
      cpu::check_index(index, length, table_rows, "lerp_rows");
      cpu::parallel_for(batch * length, cpu::row_grain(n), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T *x = io.in<T>(0) + row * n, *noise = io.in<T>(1) + row * n;
          T* y = io.out<T>(0) + row * n;
          const T sigma = io.in<T>(2)[row / length * table_rows + index[row % length]];
          const T rest = T{1} - sigma;
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) y[i] = rest * x[i] + sigma * noise[i];
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef lerp_rows_cpu;
const KernelDef lerp_rows_cpu = {.op = "lerp_rows", .create = create};

}  // namespace wam
