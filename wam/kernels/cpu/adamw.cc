#include "wam/kernels/cpu/adamw_step.h"
#include "wam/kernels/cpu/support.h"

namespace wam {
namespace {

using cpu::adamw_step::Factors;
using cpu::adamw_step::kSkip;
using cpu::adamw_step::make_factors;

template <typename T>
void step_range(const Factors<T>& f, const KernelIo& io, int64_t begin, int64_t end) {
  const T *p_in = io.in<T>(0), *m_in = io.in<T>(1), *v_in = io.in<T>(2), *g_in = io.in<T>(3);
  T *p_out = io.out<T>(0), *m_out = io.out<T>(1), *v_out = io.out<T>(2);
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    T p = p_in[i], m = m_in[i], v = v_in[i];
    cpu::adamw_step::step(f, g_in[i], p, m, v);
    p_out[i] = p;
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
