#include "wam/kernels/cpu/token_rows.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cpu::TokenSizes z = cpu::token_sizes(s.inputs[0].shape, s.inputs[1].shape);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const int32_t* index = io.in<int32_t>(3);
      cpu::check_index(index, z.length, z.table_rows, "modulate");
      cpu::for_tokens(z, [&](int64_t row) {
        const T* x = io.in<T>(0) + row * z.width;
        const T* scale = cpu::table_row(z, io.in<T>(1), index, row);
        const T* shift = cpu::table_row(z, io.in<T>(2), index, row);
        T* y = io.out<T>(0) + row * z.width;
#pragma GCC ivdep
        for (int64_t i = 0; i < z.width; ++i) y[i] = x[i] * (T{1} + scale[i]) + shift[i];
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
      cpu::check_index(index, z.length, z.table_rows, "modulate_grad");
      const int64_t n = z.width;
      const auto scale_term = [=](int64_t row, int64_t i) {
        return dy[row * n + i] * x[row * n + i];
      };
      cpu::sum_tokens(z, index, scale_term, io.out<T>(1));
      cpu::sum_tokens(
          z, index, [=](int64_t row, int64_t i) { return dy[row * n + i]; }, io.out<T>(2));
      cpu::for_tokens(z, [&](int64_t row) {
        const T* scale = cpu::table_row(z, io.in<T>(2), index, row);
        T* dx = io.out<T>(0) + row * n;
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) dx[i] = dy[row * n + i] * (T{1} + scale[i]);
      });
    });
  });
}

}  // namespace

extern const KernelDef modulate_cpu, modulate_grad_cpu;
const KernelDef modulate_cpu = {.op = "modulate", .create = create};
const KernelDef modulate_grad_cpu = {.op = "modulate_grad", .create = create_grad};

}  // namespace wam
