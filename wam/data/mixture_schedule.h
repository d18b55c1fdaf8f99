// Which dataset of a mixture each place of a run's stream belongs to. After every n places each
// source has had more than its share of n minus one sample, and less than it plus one:
//   |count_i(n) - n w_i| < 1     for all n and i, the w_i adding up to 1.
//
// The j-th sample of source i may come from place floor((j - 1) / w_i) + 1 on and must come by
// place ceil(j / w_i) (counted from 1); of those that may come, the one that must come soonest is
// taken. That always works out (Baruah, Cohen, Plaxton, Varvel: "Proportionate progress",
// Algorithmica 15, 1996; one processor, earliest deadline first). All in integers: no rounding adds
// up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace wam::data {

// Whole numbers in the proportion of the weights: exact where the weights have up to six decimals,
// else to 2^-50 of their sum. Throws ConfigError unless there are 1 to 4096 finite weights above 0.
std::vector<int64_t> whole_shares(const std::vector<double>& weights);

struct ScheduledPlace {
  int64_t source = 0;
  uint64_t own = 0;  // how many places the source had before: its own count
};

// Random access costs the places since the last access of a lower one, or since the start: 10 ns
// times the number of sources each. Where the shares are small numbers the order repeats after
// their sum and no more than that is ever gone through. Thread-safe.
class MixtureSchedule {
 public:
  explicit MixtureSchedule(std::vector<int64_t> shares);
  ~MixtureSchedule();
  ScheduledPlace at(uint64_t place) const;
  // share / sum
  double share(int64_t source) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wam::data
