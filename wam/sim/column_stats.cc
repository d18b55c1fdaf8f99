#include "wam/sim/column_stats.h"

#include <algorithm>
#include <cmath>

#include "wam/base/check.h"
#include "wam/data/rank_search.h"

namespace wam::sim {
namespace {

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values, double mean) {
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

double percentile(std::span<const double> sorted, double q) {
  WAM_CHECK(!sorted.empty() && q >= 0 && q <= 1);
  const auto place = data::quantile_place(q, static_cast<int64_t>(sorted.size()));
  return data::interpolate(sorted[place.low], sorted[place.high], place.fraction);
}

ColumnStats compute_column_stats(std::span<const double> values, int64_t width) {
  WAM_CHECK(width > 0 && !values.empty() && values.size() % width == 0);
  ColumnStats stats;
  stats.count = static_cast<int64_t>(values.size()) / width;
  std::vector<double> column(stats.count);
  for (int64_t d = 0; d < width; ++d) {
    for (int64_t row = 0; row < stats.count; ++row) column[row] = values[row * width + d];
    stats.mean.push_back(mean_of(column));
    stats.std.push_back(deviation_of(column, stats.mean.back()));
    std::sort(column.begin(), column.end());
    stats.min.push_back(column.front());
    stats.max.push_back(column.back());
    stats.q01.push_back(percentile(column, 0.01));
    stats.q99.push_back(percentile(column, 0.99));
  }
  return stats;
}

}  // namespace wam::sim
