#include "wam/data/sample_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::data {
namespace {

constexpr int kRounds = 8;
// Apart from the epochs' own permutations: these order the draws within a round of weights.
constexpr uint64_t kRoundKey = uint64_t{1} << 63;

void check_weights(const std::vector<double>& weights, size_t num_datasets) {
  const bool positive = std::all_of(weights.begin(), weights.end(),
                                    [](double w) { return std::isfinite(w) && w > 0; });
  if (positive && weights.size() == num_datasets && num_datasets <= SampleOrder::kRound / 4) return;
  throw ConfigError(
      {.where = "data.weights",
       .what = "weights do not fit the datasets",
       .got = std::to_string(weights.size()) + " weights",
       .expected = "one positive number for each of " + std::to_string(num_datasets) + " datasets",
       .remedy = "Give every dataset a weight, or none."});
}

// Draws of a round for each dataset: at least one, in proportion, largest remainders first.
std::vector<uint64_t> shares(const std::vector<double>& weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<uint64_t> result;
  std::vector<double> remainders;
  for (double weight : weights) {
    const double exact = weight / total * static_cast<double>(SampleOrder::kRound);
    result.push_back(std::max<uint64_t>(1, static_cast<uint64_t>(exact)));
    remainders.push_back(exact - static_cast<double>(result.back()));
  }
  const auto given = [&] { return std::accumulate(result.begin(), result.end(), uint64_t{0}); };
  while (given() != SampleOrder::kRound) {
    const bool too_few = given() < SampleOrder::kRound;
    auto pick = too_few ? std::max_element(remainders.begin(), remainders.end())
                        : std::min_element(remainders.begin(), remainders.end());
    uint64_t& share = result[static_cast<size_t>(pick - remainders.begin())];
    if (!too_few && share == 1) {
      *pick = 1e18;  // cannot give any away
      continue;
    }
    share += too_few ? 1 : -1;
    *pick += too_few ? -1 : 1;
  }
  return result;
}

}  // namespace

KeyedPermutation::KeyedPermutation(uint64_t size, uint64_t seed, uint64_t epoch)
    : size_(size),
      epoch_(epoch),
      key0_(static_cast<uint32_t>(seed)),
      key1_(static_cast<uint32_t>(seed >> 32) ^
            (static_cast<uint32_t>(RandomUse::kSampleOrder) * 0x85EBCA6Bu)) {
  WAM_CHECK(size > 0);
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
}

uint64_t KeyedPermutation::operator()(uint64_t i) const {
  WAM_DCHECK(i < size_);
  do {
    i = encrypt(i);
  } while (i >= size_);
  return i;
}

uint64_t KeyedPermutation::encrypt(uint64_t value) const {
  const auto mask = static_cast<uint32_t>((uint64_t{1} << half_bits_) - 1);
  uint32_t left = static_cast<uint32_t>(value >> half_bits_) & mask;
  uint32_t right = static_cast<uint32_t>(value) & mask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxBlock bits =
        philox({right, round, static_cast<uint32_t>(epoch_), static_cast<uint32_t>(epoch_ >> 32)},
               key0_, key1_);
    const uint32_t mixed = left ^ (bits[0] & mask);
    left = right;
    right = mixed;
  }
  return (uint64_t{left} << half_bits_) | right;
}

SampleOrder::SampleOrder(std::vector<int64_t> dataset_rows, const std::vector<double>& weights,
                         uint64_t seed)
    : starts_{0}, seed_(seed) {
  for (int64_t rows : dataset_rows) {
    WAM_CHECK(rows > 0);
    starts_.push_back(starts_.back() + rows);
  }
  WAM_CHECK(starts_.size() > 1);
  if (weights.empty()) return;
  check_weights(weights, dataset_rows.size());
  slot_starts_.push_back(0);
  for (uint64_t share : shares(weights)) slot_starts_.push_back(slot_starts_.back() + share);
}

OrderedRow SampleOrder::at(uint64_t draw) const {
  if (!slot_starts_.empty()) return weighted_at(draw);
  const auto size = static_cast<uint64_t>(total_rows());
  return locate(KeyedPermutation(size, seed_, draw / size)(draw % size));
}

OrderedRow SampleOrder::locate(uint64_t row) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), static_cast<int64_t>(row));
  const int64_t dataset = next - starts_.begin() - 1;
  return {dataset, static_cast<int64_t>(row) - starts_[static_cast<size_t>(dataset)]};
}

// The round's draws are shuffled; a dataset's slots then number its draws over all rounds.
OrderedRow SampleOrder::weighted_at(uint64_t draw) const {
  const uint64_t round = draw / kRound;
  const uint64_t slot = KeyedPermutation(kRound, seed_, kRoundKey | round)(draw % kRound);
  const auto next = std::upper_bound(slot_starts_.begin(), slot_starts_.end(), slot);
  const auto dataset = static_cast<size_t>(next - slot_starts_.begin()) - 1;
  const uint64_t share = slot_starts_[dataset + 1] - slot_starts_[dataset];
  const uint64_t own_draw = round * share + (slot - slot_starts_[dataset]);
  const auto rows = static_cast<uint64_t>(starts_[dataset + 1] - starts_[dataset]);
  // Each dataset has its own key, so that equally long ones are not ordered alike.
  const uint64_t key = seed_ + 0x9E3779B97F4A7C15u * (dataset + 1);
  const uint64_t row = KeyedPermutation(rows, key, own_draw / rows)(own_draw % rows);
  return {static_cast<int64_t>(dataset), static_cast<int64_t>(row)};
}

OrderedRow SampleOrder::redraw(const OrderedRow& rejected, Random& random) const {
  if (slot_starts_.empty()) return locate(random.below(static_cast<uint64_t>(total_rows())));
  const auto d = static_cast<size_t>(rejected.dataset);
  const auto rows = static_cast<uint64_t>(starts_[d + 1] - starts_[d]);
  return {rejected.dataset, static_cast<int64_t>(random.below(rows))};
}

}  // namespace wam::data
