#include "wam/kernels/cpu/linear.h"

#include "wam/kernels/cpu/column_sums.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create_linear(const KernelSignature& s) {
  const cpu::LinearSizes z = cpu::linear_sizes(s);
  const bool has_bias = s.inputs.size() == 3;
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      T* y = io.out<T>(0);
      const T* bias = has_bias ? io.in<T>(2) : nullptr;
      cpu::linear_forward(z, io.in<T>(0), io.in<T>(1), y, [&](const cpu::GemmTile& tile) {
        for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
          cpu::add_bias(tile, bias, y + row * z.n);
        }
      });
    });
  });
}

std::unique_ptr<Kernel> create_dgrad(const KernelSignature& s) {
  const cpu::LinearSizes z = cpu::linear_sizes(s);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      cpu::linear_backward(z, io.in<T>(0), io.in<T>(1), io.out<T>(0), [](const cpu::GemmTile&) {});
    });
  });
}

// db = acc + column sums of dy.
template <typename T>
void bias_grad(const T* dy, const T* acc, int64_t rows, int64_t n, T* db) {
  cpu::sum_columns<T>(
      rows, n, [=](int64_t row, int64_t i) { return dy[row * n + i]; },
      [=](int64_t i, T sum) { db[i] = acc == nullptr ? sum : acc[i] + sum; });
}

std::unique_ptr<Kernel> create_wgrad(const KernelSignature& s) {
  const bool kn = s.attrs.flag("kn"), has_bias = s.attrs.flag("bias");
  const bool accumulate = s.attrs.flag("accumulate");
  const int64_t rows = s.inputs[0].shape.num_rows();
  const int64_t n = s.inputs[0].shape[-1], k = s.inputs[1].shape[-1];
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const T *dy = io.in<T>(0), *x = io.in<T>(1);
      T* dw = io.out<T>(0);
      if (accumulate && io.inputs[2] != io.outputs[0]) std::copy_n(io.in<T>(2), n * k, dw);
      const T beta = accumulate ? T{1} : T{0};
      if (kn) {
        cpu::gemm({k, n, rows, true, false}, cpu::GemmOperands<T>{x, k, dy, n, dw, n, T{1}, beta});
      } else {
        cpu::gemm({n, k, rows, true, false}, cpu::GemmOperands<T>{dy, n, x, k, dw, k, T{1}, beta});
      }
      if (has_bias) bias_grad(dy, accumulate ? io.in<T>(3) : nullptr, rows, n, io.out<T>(1));
    });
  });
}

}  // namespace

extern const KernelDef linear_cpu, linear_dgrad_cpu, linear_wgrad_cpu;
const KernelDef linear_cpu = {.op = "linear", .create = create_linear};
const KernelDef linear_dgrad_cpu = {.op = "linear_dgrad", .create = create_dgrad};
const KernelDef linear_wgrad_cpu = {.op = "linear_wgrad", .create = create_wgrad};

}  // namespace wam
