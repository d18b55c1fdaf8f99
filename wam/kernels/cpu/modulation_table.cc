#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const Shape& out = s.outputs[0].shape;
  const int64_t parts = out[0], tokens = out[1] * out[2], n = out[3];
  WAM_CHECK(s.inputs[1].dtype == s.inputs[0].dtype) << "modulation_table on CPU has one type";
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      cpu::parallel_for(parts * tokens, cpu::row_grain(n), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t part = row / tokens, token = row % tokens;
          const T* e = io.in<T>(0) + (token * parts + part) * n;
          const T* m = io.in<T>(1) + part * n;
          T* y = io.out<T>(0) + row * n;
          for (int64_t i = 0; i < n; ++i) y[i] = e[i] + m[i];
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef modulation_table_cpu;
const KernelDef modulation_table_cpu = {.op = "modulation_table", .create = create};

}  // namespace wam
