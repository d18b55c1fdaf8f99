#include "wam/data/sample_order.h"

#include <algorithm>
#include <bit>
#include <string>

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::data {
namespace {

constexpr int kRounds = 8;
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
  if (weights.size() != dataset_rows.size()) {
    throw ConfigError({.where = "dataset.mixture",
                       .what = "weights do not fit the datasets",
                       .got = std::to_string(weights.size()) + " weights",
                       .expected = "one for each of " + std::to_string(dataset_rows.size()),
                       .remedy = "Give every dataset a weight, or none."});
  }
  schedule_ = std::make_unique<const MixtureSchedule>(whole_shares(weights));
}

double SampleOrder::share(int64_t dataset) const {
  if (schedule_ != nullptr) return schedule_->share(dataset);
  const auto d = static_cast<size_t>(dataset);
  return static_cast<double>(starts_[d + 1] - starts_[d]) / static_cast<double>(total_rows());
}

OrderedRow SampleOrder::at(uint64_t draw) const {
  if (schedule_ != nullptr) return weighted_at(draw);
  const auto size = static_cast<uint64_t>(total_rows());
  return locate(KeyedPermutation(size, seed_, draw / size)(draw % size));
}

OrderedRow SampleOrder::locate(uint64_t row) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), static_cast<int64_t>(row));
  const int64_t dataset = next - starts_.begin() - 1;
  return {dataset, static_cast<int64_t>(row) - starts_[static_cast<size_t>(dataset)]};
}

OrderedRow SampleOrder::weighted_at(uint64_t draw) const {
  const ScheduledPlace place = schedule_->at(draw);
  const auto dataset = static_cast<size_t>(place.source);
  const uint64_t own_draw = place.own;
  const auto rows = static_cast<uint64_t>(starts_[dataset + 1] - starts_[dataset]);
  // Each dataset has its own key, so that equally long ones are not ordered alike.
  const uint64_t key = seed_ + 0x9E3779B97F4A7C15u * (dataset + 1);
  const uint64_t row = KeyedPermutation(rows, key, own_draw / rows)(own_draw % rows);
  return {static_cast<int64_t>(dataset), static_cast<int64_t>(row)};
}

OrderedRow SampleOrder::redraw(const OrderedRow& rejected, Random& random) const {
  if (schedule_ == nullptr) return locate(random.below(static_cast<uint64_t>(total_rows())));
  const auto d = static_cast<size_t>(rejected.dataset);
  const auto rows = static_cast<uint64_t>(starts_[d + 1] - starts_[d]);
  return {rejected.dataset, static_cast<int64_t>(random.below(rows))};
}

}  // namespace wam::data
