#include "wam/data/mixture_schedule.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "wam/base/error.h"
#include "wam/base/philox.h"

namespace wam::data {
namespace {

using Shares = std::vector<int64_t>;

// Exact, in integers: |count sum - n share| < sum.
void expect_fair(const Shares& shares, uint64_t num_places) {
  const MixtureSchedule schedule(shares);
  const int64_t sum = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  std::vector<int64_t> counts(shares.size(), 0);
  for (uint64_t n = 1; n <= num_places; ++n) {
    const ScheduledPlace place = schedule.at(n - 1);
    ASSERT_EQ(place.own, static_cast<uint64_t>(counts[static_cast<size_t>(place.source)]));
    ++counts[static_cast<size_t>(place.source)];
    for (size_t i = 0; i < shares.size(); ++i) {
      const auto lag =
          static_cast<__int128>(n) * shares[i] - static_cast<__int128>(counts[i]) * sum;
      ASSERT_TRUE(lag < sum && lag > -static_cast<__int128>(sum))
          << "source " << i << " of " << shares.size() << " after " << n << " places";
    }
  }
}

TEST(MixtureSchedule, EveryPrefixHoldsEveryShareToWithinOneSample) {
  expect_fair({1}, 100);
  expect_fair({1, 1}, 1000);
  expect_fair({7, 2, 1}, 5000);
  expect_fair({1, 1'000'000}, 20'000);
  expect_fair(Shares(97, 1), 5000);
  // Many that fall due together, and one that crowds them.
  expect_fair({500, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 499}, 20'000);
  Shares halves = {int64_t{1} << 40};
  for (int i = 39; i >= 0; --i) halves.push_back(int64_t{1} << i);
  expect_fair(halves, 20'000);
}

TEST(MixtureSchedule, RandomWeights) {
  for (uint64_t round = 0; round < 60; ++round) {
    Random random(3, RandomUse::kTest, round, 0);
    std::vector<double> weights(1 + random.below(40));
    // From nearly equal to many orders of magnitude apart.
    const double spread = 12 * random.uniform();
    for (double& weight : weights) weight = std::exp(spread * random.uniform());
    const Shares shares = whole_shares(weights);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto sum = static_cast<double>(std::accumulate(shares.begin(), shares.end(), int64_t{0}));
    for (size_t i = 0; i < weights.size(); ++i) {
      // Half a unit of 2^50 each, of the share and of the sum.
      EXPECT_NEAR(static_cast<double>(shares[i]) / sum, weights[i] / total, 41 * 0x1p-51);
    }
    expect_fair(shares, 3000);
  }
}

TEST(MixtureSchedule, WeightsOfFewDecimalsAreExact) {
  EXPECT_EQ(whole_shares({0.7, 0.2, 0.1}), (Shares{7, 2, 1}));
  EXPECT_EQ(whole_shares({4, 2}), (Shares{2, 1}));
  EXPECT_EQ(whole_shares({0.333333, 0.666667}), (Shares{333333, 666667}));
  EXPECT_EQ(whole_shares({273465, 2096}), (Shares{273465, 2096}));
  EXPECT_GT(whole_shares({std::sqrt(2.0), 1})[0], int64_t{1} << 48);
  EXPECT_EQ(whole_shares({1e300, 1e-300}).size(), 2u);
}

TEST(MixtureSchedule, WrongWeights) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(whole_shares({}), ConfigError);
  EXPECT_THROW(whole_shares({1, 0}), ConfigError);
  EXPECT_THROW(whole_shares({1, -1}), ConfigError);
  EXPECT_THROW(whole_shares({1, nan}), ConfigError);
  EXPECT_THROW(whole_shares({1, std::numeric_limits<double>::infinity()}), ConfigError);
}

// Any place, in any order of asking: what a resume, other ranks and threads rely on.
TEST(MixtureSchedule, PlacesDoNotDependOnWhatWasAskedBefore) {
  for (const Shares& shares : {Shares{3, 2, 1}, whole_shares({std::sqrt(2.0), 1, 0.1})}) {
    const MixtureSchedule forward(shares), jumping(shares);
    std::vector<ScheduledPlace> expected;
    for (uint64_t n = 0; n < 40'000; ++n) expected.push_back(forward.at(n));
    for (uint64_t i = 0; i < 2000; ++i) {
      const uint64_t place = Random(1, RandomUse::kTest, i, 0).below(40'000);
      const ScheduledPlace got = jumping.at(place);
      EXPECT_EQ(got.source, expected[place].source);
      EXPECT_EQ(got.own, expected[place].own);
    }
    // Far ahead and back, past the states that are kept.
    const ScheduledPlace far = jumping.at(3'000'000);
    EXPECT_EQ(jumping.at(17).source, expected[17].source);
    EXPECT_EQ(jumping.at(3'000'000).own, far.own);
    EXPECT_EQ(MixtureSchedule(shares).at(3'000'000).own, far.own);
  }
}

TEST(MixtureSchedule, SmallSharesRepeatAndCountOn) {
  const MixtureSchedule schedule({7, 2, 1});
  for (uint64_t n = 0; n < 30; ++n) {
    const uint64_t far = 10 * 1'000'000'000'000'000 + n;
    EXPECT_EQ(schedule.at(far).source, schedule.at(n).source);
    const uint64_t share =
        std::array<uint64_t, 3>{7, 2, 1}[static_cast<size_t>(schedule.at(n).source)];
    EXPECT_EQ(schedule.at(far).own, schedule.at(n).own + share * 1'000'000'000'000'000);
  }
}

}  // namespace
}  // namespace wam::data
