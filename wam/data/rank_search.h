// Exact order statistics of many streams of numbers in bounded memory, by passes over the data:
// each pass counts values in bins between the bounds known so far, and the bin that holds the
// wanted rank gives the next bounds. Needs three or four passes whatever the number of values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wam::data {

// Seeks the value of one rank (0 is the smallest) in one stream.
class RankSearch {
 public:
  // `min` and `max` of the stream's values, all finite; 0 <= rank < number of values.
  RankSearch(int64_t rank, double min, double max);
  bool is_done() const { return low_ == high_; }
  double value() const { return low_; }
  // A pass: start_pass(), add() every value of the stream in any order, end_pass().
  void start_pass();
  void add(double value);
  void end_pass();

 private:
  struct Bin {
    int64_t count = 0;
    double min = 0, max = 0;
  };
  int64_t bin_of(double value) const;
  int64_t rank_;  // among the values within [low_, high_]
  double low_, high_;
  bool by_bits_ = true;  // turned before each pass
  double scale_ = 0;
  uint64_t bits_per_bin_ = 1;
  std::vector<Bin> bins_;
};

// Where numpy.quantile(values, q) with linear interpolation lies: between the values of ranks `low`
// and `high`, `fraction` of the way.
struct QuantilePlace {
  int64_t low = 0, high = 0;
  double fraction = 0;
};
QuantilePlace quantile_place(double q, int64_t num_values);
// numpy's interpolation, which is exact at both ends.
double interpolate(double low, double high, double fraction);

}  // namespace wam::data
