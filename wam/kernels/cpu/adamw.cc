#include <cmath>

#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

// Places in the scalars; the layout is stated in ops/adamw.h.
enum Place { kLr, kCorrection1, kCorrection2, kClipFactor, kSkip, kWeightDecay };

// A step's numbers, worked out in float64 and rounded once, as PyTorch does.
template <typename T>
struct Factors {
  T clip, decay, beta2, one_minus_beta1, one_minus_beta2, root_correction2, step, eps;
};

template <typename T>
Factors<T> make_factors(const float* scalars, double beta1, double beta2, double eps) {
  const double lr = scalars[kLr];
  return {.clip = static_cast<T>(scalars[kClipFactor]),
          .decay = static_cast<T>(1 - lr * static_cast<double>(scalars[kWeightDecay])),
          .beta2 = static_cast<T>(beta2),
          .one_minus_beta1 = static_cast<T>(1 - beta1),
          .one_minus_beta2 = static_cast<T>(1 - beta2),
          .root_correction2 = static_cast<T>(std::sqrt(static_cast<double>(scalars[kCorrection2]))),
          .step = static_cast<T>(lr / static_cast<double>(scalars[kCorrection1])),
          .eps = static_cast<T>(eps)};
}

template <typename T>
void step_range(const Factors<T>& f, const KernelIo& io, int64_t begin, int64_t end) {
  const T *p_in = io.in<T>(0), *m_in = io.in<T>(1), *v_in = io.in<T>(2), *g_in = io.in<T>(3);
  T *p_out = io.out<T>(0), *m_out = io.out<T>(1), *v_out = io.out<T>(2);
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const T g = g_in[i] * f.clip;
    const T m = m_in[i] + f.one_minus_beta1 * (g - m_in[i]);
    const T v = v_in[i] * f.beta2 + f.one_minus_beta2 * g * g;
    const T denominator = std::sqrt(v) / f.root_correction2 + f.eps;
    p_out[i] = p_in[i] * f.decay - f.step * m / denominator;
    m_out[i] = m;
    v_out[i] = v;
  }
}

std::unique_ptr<Kernel> create(const KernelSignature& s) {
  const double beta1 = s.attrs.real("beta1"), beta2 = s.attrs.real("beta2");
  const double eps = s.attrs.real("eps");
  const int64_t count = s.outputs[0].shape.num_elements();
  return cpu::dispatch_float(s.outputs[0].dtype, [&]<typename T>() {
    return cpu::make_kernel([=](const KernelIo& io) {
      const float* scalars = io.in<float>(4);
      if (scalars[kSkip] != 0) {
        for (size_t i = 0; i < 3; ++i) {
          if (io.inputs[i] != io.outputs[i]) std::copy_n(io.in<T>(i), count, io.out<T>(i));
        }
        return;
      }
      const Factors<T> factors = make_factors<T>(scalars, beta1, beta2, eps);
      cpu::parallel_for(count, 16384,
                        [&](int64_t begin, int64_t end) { step_range(factors, io, begin, end); });
    });
  });
}

}  // namespace

extern const KernelDef adamw_cpu;
const KernelDef adamw_cpu = {.op = "adamw", .create = create};

}  // namespace wam
