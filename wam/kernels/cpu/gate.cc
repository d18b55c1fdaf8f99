#include "wam/kernels/cpu/token_rows.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cpu::TokenSizes z = cpu::token_sizes(s.inputs[0].shape, s.inputs[1].shape);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const int32_t* index = io.in<int32_t>(2);
      cpu::check_index(index, z.length, z.table_rows, "gate");
      cpu::for_tokens(z, [&](int64_t row) {
        const T* x = io.in<T>(0) + row * z.width;
        const T* g = cpu::table_row(z, io.in<T>(1), index, row);
        T* y = io.out<T>(0) + row * z.width;
#pragma GCC ivdep
        for (int64_t i = 0; i < z.width; ++i) y[i] = x[i] * g[i];
      });
    });
  });
}

// The sums come first: dx may take the place of dy or x.
std::unique_ptr<Kernel> create_grad(const KernelSignature& s) {
  const cpu::TokenSizes z = cpu::token_sizes(s.inputs[1].shape, s.inputs[2].shape);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T *dy = io.in<T>(0), *x = io.in<T>(1);
      const int32_t* index = io.in<int32_t>(3);
      cpu::check_index(index, z.length, z.table_rows, "gate_grad");
      const int64_t n = z.width;
      const auto term = [=](int64_t row, int64_t i) { return dy[row * n + i] * x[row * n + i]; };
      cpu::sum_tokens(z, index, term, io.out<T>(1));
      cpu::for_tokens(z, [&](int64_t row) {
        const T* g = cpu::table_row(z, io.in<T>(2), index, row);
        T* dx = io.out<T>(0) + row * n;
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) dx[i] = dy[row * n + i] * g[i];
      });
    });
  });
}

}  // namespace

extern const KernelDef gate_cpu, gate_grad_cpu;
const KernelDef gate_cpu = {.op = "gate", .create = create};
const KernelDef gate_grad_cpu = {.op = "gate_grad", .create = create_grad};

}  // namespace wam
