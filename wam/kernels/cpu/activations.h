// Activation functions and their derivatives, one element at a time: shared by the plain ops and by
// the fused ones, which therefore give the same bits.
#pragma once

#include "wam/kernels/cpu/math.h"

namespace wam::cpu {

template <typename T>
T silu(T x) {
  return x * math::sigmoid(x);
}

template <typename T>
T silu_grad(T dy, T x) {
  const T s = math::sigmoid(x);
  return dy * (s + x * s * (T{1} - s));
}

// x/2 (1 + tanh u) = x sigmoid(2u), which does not cancel for negative x.
template <typename T>
T gelu_tanh(T x) {
  constexpr T kTwice = static_cast<T>(1.5957691216057307), kCubic = static_cast<T>(0.044715);
  return x * math::sigmoid(kTwice * (x + kCubic * x * x * x));
}

template <typename T>
T gelu_tanh_grad(T dy, T x) {
  constexpr T kTwice = static_cast<T>(1.5957691216057307), kCubic = static_cast<T>(0.044715);
  const T s = math::sigmoid(kTwice * (x + kCubic * x * x * x));
  const T slope = kTwice * (T{1} + T{3} * kCubic * x * x);
  return dy * (s + x * s * (T{1} - s) * slope);
}

template <typename T>
T gelu_erf(T x) {
  constexpr T kRootHalf = static_cast<T>(0.70710678118654752);
  return T{0.5} * x * (T{1} + math::erf(x * kRootHalf));
}

template <typename T>
T gelu_erf_grad(T dy, T x) {
  constexpr T kRootHalf = static_cast<T>(0.70710678118654752);
  constexpr T kDensity = static_cast<T>(0.39894228040143268);  // 1 / sqrt(2 pi)
  const T cdf = T{0.5} * (T{1} + math::erf(x * kRootHalf));
  return dy * (cdf + x * (kDensity * math::exp(T{-0.5} * x * x)));
}

template <typename T>
T relu(T x) {
  return x < T{0} ? T{0} : x;
}

template <typename T>
T relu_grad(T dy, T x) {
  return x > T{0} ? dy : T{0};
}

}  // namespace wam::cpu
