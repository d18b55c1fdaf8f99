#include "wam/sim/column_stats.h"

#include <gtest/gtest.h>

#include "wam/base/error.h"

namespace wam::sim {
namespace {

// Expected values: numpy.percentile with its default method.
TEST(ColumnStats, PercentilesInterpolateLinearly) {
  const std::vector<double> values = {1, 2, 4, 8, 16};
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 1), 16);
  EXPECT_EQ(percentile(values, 0.5), 4);
  EXPECT_DOUBLE_EQ(percentile(values, 0.01), 1.04);
  EXPECT_DOUBLE_EQ(percentile(values, 0.99), 15.68);
  EXPECT_EQ(percentile(std::vector<double>{7}, 0.99), 7);
}

TEST(ColumnStats, ColumnsAreSeparate) {
  const std::vector<double> values = {3, -1, 1, -1, 2, -1, 4, -1};
  const ColumnStats stats = compute_column_stats(values, 2);
  EXPECT_EQ(stats.count, 4);
  EXPECT_EQ(stats.mean, (std::vector<double>{2.5, -1}));
  EXPECT_DOUBLE_EQ(stats.std[0], 1.1180339887498949);
  EXPECT_EQ(stats.std[1], 0);
  EXPECT_EQ(stats.min, (std::vector<double>{1, -1}));
  EXPECT_EQ(stats.max, (std::vector<double>{4, -1}));
  EXPECT_DOUBLE_EQ(stats.q01[0], 1.03);
  EXPECT_DOUBLE_EQ(stats.q99[0], 3.97);
  EXPECT_EQ(stats.q99[1], -1);
}

TEST(ColumnStats, EmptyColumnsAreABug) { EXPECT_THROW(compute_column_stats({}, 1), InternalError); }

}  // namespace
}  // namespace wam::sim
