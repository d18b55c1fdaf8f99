// One element's AdamW step, shared by the kernels with a whole and with a split master weight.
#pragma once

#include <cmath>

namespace wam::cpu::adamw_step {

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

// Takes g, moves p, m and v.
template <typename T>
void step(const Factors<T>& f, T gradient, T& p, T& m, T& v) {
  const T g = gradient * f.clip;
  m = m + f.one_minus_beta1 * (g - m);
  v = v * f.beta2 + f.one_minus_beta2 * g * g;
  const T denominator = std::sqrt(v) / f.root_correction2 + f.eps;
  p = p * f.decay - f.step * m / denominator;
}

}  // namespace wam::cpu::adamw_step
