#include "wam/data/rank_search.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "wam/base/check.h"

namespace wam::data {
namespace {

constexpr int64_t kNumBins = 1024;

// Finite doubles as integers in the same order; both zeros are one value.
uint64_t ordered_bits(double value) {
  const auto bits = std::bit_cast<uint64_t>(value + 0.0);
  constexpr uint64_t kSign = uint64_t{1} << 63;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

}  // namespace

RankSearch::RankSearch(int64_t rank, double min, double max) : rank_(rank), low_(min), high_(max) {
  WAM_CHECK(rank >= 0 && std::isfinite(min) && std::isfinite(max) && min <= max) << rank;
}

void RankSearch::start_pass() {
  bins_.assign(kNumBins, {});
  by_bits_ = !by_bits_;
  // Halves, so that the width of the range cannot overflow.
  scale_ = static_cast<double>(kNumBins) / (high_ / 2 - low_ / 2);
  bits_per_bin_ = (ordered_bits(high_) - ordered_bits(low_)) / kNumBins + 1;
}

// Both ways keep the order: a larger value never gets a lower bin. The ends of the range get
// different bins, so every pass makes the range smaller.
int64_t RankSearch::bin_of(double value) const {
  if (by_bits_) {
    return static_cast<int64_t>((ordered_bits(value) - ordered_bits(low_)) / bits_per_bin_);
  }
  if (value == low_) return 0;
  const double place = (value / 2 - low_ / 2) * scale_;
  return value < high_ && place < kNumBins ? static_cast<int64_t>(place) : kNumBins - 1;
}

void RankSearch::add(double value) {
  if (value < low_ || value > high_ || is_done()) return;
  const int64_t i = std::min(bin_of(value), kNumBins - 1);
  Bin& bin = bins_[static_cast<size_t>(i)];
  bin.min = bin.count == 0 ? value : std::min(bin.min, value);
  bin.max = bin.count == 0 ? value : std::max(bin.max, value);
  ++bin.count;
}

void RankSearch::end_pass() {
  if (is_done()) return;
  for (const Bin& bin : bins_) {
    if (rank_ >= bin.count) {
      rank_ -= bin.count;
      continue;
    }
    low_ = bin.min;
    high_ = bin.max;
    bins_.clear();
    return;
  }
  WAM_CHECK(false) << "fewer values than the rank: the data changed between passes";
}

QuantilePlace quantile_place(double q, int64_t num_values) {
  WAM_CHECK(num_values > 0 && q >= 0 && q <= 1) << q << " of " << num_values;
  const double place = q * static_cast<double>(num_values - 1);
  const auto low = static_cast<int64_t>(std::floor(place));
  return {low, std::min(low + 1, num_values - 1), place - std::floor(place)};
}

double interpolate(double low, double high, double fraction) {
  const double difference = high - low;
  return fraction < 0.5 ? low + difference * fraction : high - difference * (1 - fraction);
}

}  // namespace wam::data
