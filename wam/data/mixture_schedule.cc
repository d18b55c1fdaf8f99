#include "wam/data/mixture_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::data {
namespace {

constexpr size_t kMaxSources = 4096;
constexpr uint64_t kChunk = 4096;         // places worked out together
constexpr uint64_t kChunksPerMark = 256;  // states kept: one each million places
constexpr int64_t kMaxPeriod = 1 << 26;   // an order that repeats sooner is not gone through again
constexpr double kFine = 1125899906842624;  // 2^50
constexpr double kMostDecimals = 1e6;

void check_weights(const std::vector<double>& weights) {
  const bool positive = std::all_of(weights.begin(), weights.end(),
                                    [](double w) { return std::isfinite(w) && w > 0; });
  if (positive && !weights.empty() && weights.size() <= kMaxSources) return;
  throw ConfigError({.where = "dataset.mixture",
                     .what = "weights cannot be used",
                     .got = std::to_string(weights.size()) + " weights" +
                            (positive ? "" : ", some not a finite number above 0"),
                     .expected = "1 to 4096 numbers above 0",
                     .remedy = "Correct the weights; leave out a dataset that is not wanted."});
}

// The weights times `scale`, if those are whole numbers.
std::vector<int64_t> scaled(const std::vector<double>& weights, double scale) {
  std::vector<int64_t> shares;
  for (const double weight : weights) {
    const double value = weight * scale;
    // Decimals of a text are not exact in binary: a few units in the last place.
    if (value > kFine || std::abs(value - std::round(value)) > 1e-12 * value) return {};
    shares.push_back(std::llround(value));
  }
  return shares;
}

}  // namespace

std::vector<int64_t> whole_shares(const std::vector<double>& weights) {
  check_weights(weights);
  std::vector<int64_t> shares;
  for (double scale = 1; shares.empty() && scale <= kMostDecimals; scale *= 10) {
    shares = scaled(weights, scale);
  }
  // Sums and products below must stay in 64 bits.
  double sum = 0;
  for (const int64_t share : shares) sum += static_cast<double>(share);
  if (sum > 1024 * kFine) shares.clear();
  if (shares.empty()) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const double weight : weights) {
      shares.push_back(std::max<int64_t>(1, std::llround(weight / total * kFine)));
    }
  }
  int64_t divisor = 0;
  for (const int64_t share : shares) divisor = std::gcd(divisor, share);
  for (int64_t& share : shares) share /= divisor;
  return shares;
}

struct MixtureSchedule::Impl {
  // Where the stream stands before a place.
  struct State {
    std::vector<int64_t> lag;     // n share - count sum: how far behind, in units of 1 / sum
    std::vector<uint64_t> count;  // of each source
  };
  struct Chunk {
    uint64_t number = ~uint64_t{0};
    std::vector<ScheduledPlace> places;
  };

  std::vector<int64_t> shares;
  int64_t sum = 0;
  std::mutex mutex;
  std::map<uint64_t, State> marks;  // by chunk
  State state;                      // before chunk `next`
  uint64_t next = 0;
  std::array<Chunk, 4> recent;  // by number % 4

  ScheduledPlace take(State& s) const;
  const Chunk& chunk(uint64_t number);
  void fill(Chunk& chunk);
};

// The next place. Of the sources whose next sample may come, that which must come first.
ScheduledPlace MixtureSchedule::Impl::take(State& s) const {
  size_t best = 0;
  int64_t best_wait = -1;
  for (size_t i = 0; i < shares.size(); ++i) {
    s.lag[i] += shares[i];
    if (s.lag[i] <= 0) continue;  // taking it would put it a whole sample ahead
    const int64_t wait = (sum - s.lag[i] + shares[i] - 1) / shares[i];
    if (best_wait >= 0 && wait >= best_wait) continue;
    best = i;
    best_wait = wait;
  }
  WAM_CHECK(best_wait >= 0) << "no source may come";
  s.lag[best] -= sum;
  return {static_cast<int64_t>(best), s.count[best]++};
}

void MixtureSchedule::Impl::fill(Chunk& chunk) {
  if (next % kChunksPerMark == 0) marks.try_emplace(next, state);
  chunk.number = next++;
  chunk.places.clear();
  for (uint64_t i = 0; i < kChunk; ++i) chunk.places.push_back(take(state));
}

const MixtureSchedule::Impl::Chunk& MixtureSchedule::Impl::chunk(uint64_t number) {
  Chunk& wanted = recent[number % recent.size()];
  if (wanted.number == number) return wanted;
  if (number < next || number >= next + kChunksPerMark) {
    const auto mark = std::prev(marks.upper_bound(number));
    if (number < next || mark->first > next) {
      state = mark->second;
      next = mark->first;
    }
  }
  while (next <= number) fill(recent[next % recent.size()]);
  return wanted;
}

MixtureSchedule::MixtureSchedule(std::vector<int64_t> shares) : impl_(std::make_unique<Impl>()) {
  WAM_CHECK(!shares.empty() && shares.size() <= kMaxSources);
  for (const int64_t share : shares) {
    WAM_CHECK(share > 0 && share <= (int64_t{1} << 61) - impl_->sum) << share;
    impl_->sum += share;
  }
  impl_->state = {std::vector<int64_t>(shares.size(), 0), std::vector<uint64_t>(shares.size(), 0)};
  impl_->marks.emplace(0, impl_->state);
  impl_->shares = std::move(shares);
}
MixtureSchedule::~MixtureSchedule() = default;

double MixtureSchedule::share(int64_t source) const {
  return static_cast<double>(impl_->shares.at(static_cast<size_t>(source))) /
         static_cast<double>(impl_->sum);
}

ScheduledPlace MixtureSchedule::at(uint64_t place) const {
  // After `sum` places every source has had exactly its share.
  const auto period = static_cast<uint64_t>(impl_->sum);
  const uint64_t rounds = impl_->sum <= kMaxPeriod ? place / period : 0;
  const uint64_t rest = place - rounds * period;
  const std::lock_guard lock(impl_->mutex);
  ScheduledPlace result = impl_->chunk(rest / kChunk).places[rest % kChunk];
  result.own += rounds * static_cast<uint64_t>(impl_->shares[static_cast<size_t>(result.source)]);
  return result;
}

}  // namespace wam::data
