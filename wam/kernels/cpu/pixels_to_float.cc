#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t count = s.outputs[0].shape.num_elements();
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const uint8_t* x = io.in<uint8_t>(0);
      T* y = io.out<T>(0);
      cpu::parallel_for(count, 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          y[i] = (static_cast<T>(x[i]) / T{255} - T{0.5}) / T{0.5};
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef pixels_to_float_cpu;
const KernelDef pixels_to_float_cpu = {.op = "pixels_to_float", .create = create};

}  // namespace wam
