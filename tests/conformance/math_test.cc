// The functions of kernels/cpu/math.h over all floats of interest, in steps through their bit
// patterns.
#include "wam/kernels/cpu/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace wam::cpu::math {
namespace {

// Distance to the true value in units of the last place of a float of that size. What would be
// subnormal may be zero.
double ulps(float got, double want) {
  if (got == 0 && std::fabs(want) <= std::numeric_limits<float>::min()) return 0;
  if (std::isnan(want)) return std::isnan(got) ? 0 : HUGE_VAL;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded) || got == want) return got == rounded ? 0 : HUGE_VAL;
  const int exponent = want == 0 ? -126 : std::max(-126, std::ilogb(want));
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 23);
}

template <typename Got, typename Want>
double worst_ulps(const Got& got, const Want& want) {
  double worst = 0;
  // A prime step visits all exponents and a spread of fractions.
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    worst = std::max(worst, ulps(got(x), want(static_cast<double>(x))));
  }
  return worst;
}

TEST(Math, ExpIsWithinOneUlp) {
  EXPECT_LE(worst_ulps([](float x) { return exp(x); }, [](double x) { return std::exp(x); }), 1.0);
}

TEST(Math, ErfIsWithinTwoUlps) {
  EXPECT_LE(worst_ulps([](float x) { return erf(x); }, [](double x) { return std::erf(x); }), 2.0);
}

TEST(Math, SigmoidIsWithinThreeUlps) {
  const auto got = [](float x) { return x < -87 ? 0.0f : sigmoid(x); };
  const auto want = [](double x) { return x < -87 ? 0.0 : 1 / (1 + std::exp(-x)); };
  EXPECT_LE(worst_ulps(got, want), 3.0);
}

TEST(Math, SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp(-infinity), 0.0f);
  EXPECT_EQ(exp(infinity), infinity);
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(exp(-0.0f), 1.0f);
  EXPECT_EQ(erf(infinity), 1.0f);
  EXPECT_EQ(erf(-infinity), -1.0f);
  EXPECT_TRUE(std::isnan(exp(std::nanf(""))));
  EXPECT_TRUE(std::isnan(erf(std::nanf(""))));
  EXPECT_EQ(sigmoid(infinity), 1.0f);
  EXPECT_EQ(sigmoid(-infinity), 0.0f);
}

}  // namespace
}  // namespace wam::cpu::math
