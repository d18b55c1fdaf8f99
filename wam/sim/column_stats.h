// Statistics of numeric columns as dataset tools write them: mean and population standard
// deviation, extremes, and the percentiles 1 and 99 by linear interpolation between the nearest
// ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wam::sim {

struct ColumnStats {  // one number per component of the column
  std::vector<double> mean, std, min, max, q01, q99;
  int64_t count = 0;  // rows
};

// values: [rows, width] row-major, at least one row.
ColumnStats compute_column_stats(std::span<const double> values, int64_t width);

// The value that a share `q` in [0, 1] of `sorted` lies below; not empty.
double percentile(std::span<const double> sorted, double q);

}  // namespace wam::sim
