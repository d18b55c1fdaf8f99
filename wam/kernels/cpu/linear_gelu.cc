#include "wam/kernels/cpu/activations.h"
#include "wam/kernels/cpu/linear.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const cpu::LinearSizes z = cpu::linear_sizes(s);
  const bool has_bias = s.inputs.size() == 3;
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      T *h = io.out<T>(0), *pre = io.out<T>(1);
      const T* bias = has_bias ? io.in<T>(2) : nullptr;
      cpu::linear_forward(z, io.in<T>(0), io.in<T>(1), pre, [&](const cpu::GemmTile& tile) {
        for (int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
          T *to = h + row * z.n, *from = pre + row * z.n;
          cpu::add_bias(tile, bias, from);
          for (int64_t i = tile.col; i < tile.col + tile.cols; ++i) to[i] = cpu::gelu_tanh(from[i]);
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef linear_gelu_cpu;
const KernelDef linear_gelu_cpu = {.op = "linear_gelu", .create = create};

}  // namespace wam
