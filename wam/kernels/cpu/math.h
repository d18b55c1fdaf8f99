// exp, sigmoid and erf that vectorise: plain arithmetic on float, no table, no branch, so that a loop
// over them becomes AVX code and gives the same bits in every kernel. The polynomials are minimax fits
// made for this file by weighted least squares. double goes to the C library: it serves gradient checks.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace wam::cpu::math {

inline double exp(double x) { return std::exp(x); }
inline double erf(double x) { return std::erf(x); }

// Within 1 ulp; 0 below -87.33, where results would be subnormal (and slow), infinity above 88.73, NaN
// kept.
inline float exp(float x) {
  constexpr float kLog2E = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e430p-1f, kLn2Low = -0x1.05c610p-29f;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  constexpr float kRound = 0x1.8p+23f;
  constexpr int32_t kRoundBits = 0x4B400000;
  constexpr float kLowest = -87.33654f;  // just above ln 2^-126
  const float low = x < kLowest ? kLowest : x;
  const float clamped = low > 89.0f ? 89.0f : low;
  const float rounded = std::fma(clamped, kLog2E, kRound);
  const float n = rounded - kRound;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, clamped));
  float q = 0x1.6a1a6ap-10f;  // (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2
  q = std::fma(q, r, 0x1.123fc8p-7f);
  q = std::fma(q, r, 0x1.555916p-5f);
  q = std::fma(q, r, 0x1.55548ap-3f);
  q = std::fma(q, r, 0x1.fffffcp-2f);
  const float p = std::fma(r * r, q, r) + 1.0f;
  // 2^n in two factors: n reaches from -126 to 129.
  const int32_t exponent = std::bit_cast<int32_t>(rounded) - kRoundBits;
  const int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((exponent - half + 127) << 23);
  return x < kLowest ? 0.0f : p * first * second;
}

// Within 2 ulp, NaN kept.
inline float erf(float x) {
  const float t = std::fabs(x), s = x * x;
  float small = -0x1.335774p-11f;  // erf(x)/x - 1 in x^2, |x| < 0.93
  small = std::fma(small, s, 0x1.458ceap-8f);
  small = std::fma(small, s, -0x1.b640dep-6f);
  small = std::fma(small, s, 0x1.ce1538p-4f);
  small = std::fma(small, s, -0x1.8126c6p-2f);
  small = std::fma(small, s, 0x1.06eba4p-3f);
  small = std::fma(small, x, x);
  const float u = t > 3.95f ? 3.95f : t;
  float large = 0x1.91cd7cp-9f;  // -ln(erfc(t)) - t on [0.93, 3.95], beyond which erf rounds to 1
  large = std::fma(-0x1.9fb39ap-13f, u, large);
  large = std::fma(large, u, -0x1.6d9d1cp-6f);
  large = std::fma(large, u, 0x1.aa7342p-4f);
  large = std::fma(large, u, 0x1.4621b6p-1f);
  large = std::fma(large, u, 0x1.05ba9ap-3f);
  large = std::fma(large, u, 0x1.5d06bep-13f);
  const float tail = std::copysign(1.0f - exp(-(large + u)), x);
  return t < 0.93f ? small : (t == t ? tail : x);
}

// 1 / (1 + exp(-x)): no cancellation on either side.
template <typename T>
T sigmoid(T x) {
  return T{1} / (T{1} + exp(-x));
}

}  // namespace wam::cpu::math
