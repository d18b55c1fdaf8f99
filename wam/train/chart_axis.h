// Axes of charts: ranges, round tick values and their labels.
#pragma once

#include <string>
#include <vector>

namespace wam::train {

struct Tick {
  double value = 0;
  std::string label;
};

// Maps values to [0, 1] along an axis. On a logarithmic one only positive values have a place.
class ChartAxis {
 public:
  // Covers [low, high] (finite; positive if logarithmic) with `margin` of the length at either end.
  // A range of one value is widened.
  ChartAxis(double low, double high, bool is_log, double margin);

  bool has_place(double value) const;
  double place(double value) const;  // may lie outside [0, 1] for values outside the range
  double low() const { return low_; }
  double high() const { return high_; }
  bool is_log() const { return is_log_; }
  // About `count` ticks inside the range, at 1, 2 or 5 times a power of ten (logarithmic: powers of
  // ten, with 2 and 5 between them where there is room).
  std::vector<Tick> ticks(int count) const;

 private:
  std::vector<Tick> linear_ticks(int count) const;
  std::vector<Tick> log_ticks(int count) const;
  double low_, high_;
  bool is_log_;
};

}  // namespace wam::train
