#include <cmath>
#include <vector>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

std::vector<double> frequencies(int64_t half) {
  std::vector<double> result;
  for (int64_t i = 0; i < half; ++i) {
    result.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
  }
  return result;
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const int64_t half = s.attrs.integer("dim") / 2, count = s.inputs[0].shape.num_elements();
  const bool cos_first = s.attrs.text("order") == "cos_sin";
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=, frequency = frequencies(half)](const KernelIo& io) {
      const auto grain = cpu::row_grain(40 * half);
      cpu::parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const auto t = static_cast<double>(io.in<T>(0)[row]);
          T* first = io.out<T>(0) + row * 2 * half;
          T *cosines = cos_first ? first : first + half, *sines = cos_first ? first + half : first;
          for (int64_t i = 0; i < half; ++i) {
            const double angle = t * frequency[static_cast<size_t>(i)];
            cosines[i] = static_cast<T>(std::cos(angle));
            sines[i] = static_cast<T>(std::sin(angle));
          }
        }
      });
    });
  });
}

}  // namespace

extern const KernelDef timestep_embedding_cpu;
const KernelDef timestep_embedding_cpu = {.op = "timestep_embedding", .create = create};

}  // namespace wam
