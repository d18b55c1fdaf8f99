#include "wam/kernels/cpu/activations.h"
#include "wam/kernels/cpu/linear.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cpu::LinearSizes z = cpu::linear_sizes(s);
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      T* dpre = io.out<T>(0);
      const T* pre = io.in<T>(2);
      cpu::linear_backward(z, io.in<T>(0), io.in<T>(1), dpre, [&](const cpu::GemmTile& tile) {
        for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
          T* to = dpre + row * z.k;
          const T* from = pre + row * z.k;
          for (int64_t i = tile.col; i < tile.col + tile.cols; ++i) {
            to[i] = cpu::gelu_tanh_grad(to[i], from[i]);
          }
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef linear_dgrad_gelu_cpu;
const KernelDef linear_dgrad_gelu_cpu = {.op = "linear_dgrad_gelu", .create = create};

}  // namespace wam
