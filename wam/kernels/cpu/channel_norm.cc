#include "wam/kernels/cpu/activations.h"
#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

constexpr double kSmallestNorm = 1e-12;

template <typename T>
void norm_row(const T* x, const T* gamma, int64_t channels, bool silu, T* y) {
  const T square = cpu::ordered_sum<T>(channels, [x](int64_t i) { return x[i] * x[i]; });
  const T norm = std::max(std::sqrt(square), static_cast<T>(kSmallestNorm));
  const T factor = std::sqrt(static_cast<T>(channels)) / norm;
  for (int64_t i = 0; i < channels; ++i) y[i] = (x[i] * factor) * gamma[i];
  if (!silu) return;
  for (int64_t i = 0; i < channels; ++i) y[i] = cpu::silu(y[i]);
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t rows = s.inputs[0].shape.num_rows(), channels = s.inputs[0].shape[-1];
  const bool silu = s.attrs.flag("silu");
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      cpu::parallel_for(rows, cpu::row_grain(channels), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          norm_row(io.in<T>(0) + row * channels, io.in<T>(1), channels, silu,
                   io.out<T>(0) + row * channels);
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef channel_norm_cpu;
const KernelDef channel_norm_cpu = {.op = "channel_norm", .create = create};

}  // namespace wam
