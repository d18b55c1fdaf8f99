#include "wam/kernels/cpu/column_sums.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t period = s.outputs[0].shape.num_elements();
  const int64_t rows = period == 0 ? 0 : s.inputs[0].shape.num_elements() / period;
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T* x = io.in<T>(0);
      T* y = io.out<T>(0);
      cpu::sum_columns<T>(
          rows, period, [=](int64_t row, int64_t i) { return x[row * period + i]; },
          [=](int64_t i, T sum) { y[i] = sum; });
    });
  });
}

}  // namespace

extern const KernelDef sum_rows_cpu;
const KernelDef sum_rows_cpu = {.op = "sum_rows", .create = create};

}  // namespace wam
