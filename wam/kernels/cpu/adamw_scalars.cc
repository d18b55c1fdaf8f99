#include <cmath>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// Places in the schedule; the layout is stated in ops/adamw.h.
constexpr size_t kClipFactor = 3, kSkip = 4;

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const double max_norm = s.attrs.real("max_norm");
  return cpu::dispatch_float(s.inputs[1].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      float* out = io.out<float>(0);
      std::copy_n(io.in<float>(0), 8, out);
      const double norm = std::sqrt(static_cast<double>(io.in<T>(1)[0]));
      if (!std::isfinite(norm)) out[kSkip] = 1;
      const double factor = max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + 1e-6));
      out[kClipFactor] = std::isfinite(norm) ? static_cast<float>(factor) : 0.0f;
    });
  });
}

}  // namespace

extern const KernelDef adamw_scalars_cpu;
const KernelDef adamw_scalars_cpu = {.op = "adamw_scalars", .create = create};

}  // namespace wam
