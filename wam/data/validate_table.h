// Private to validate*: one episode's parquet file, and what all episodes' values say together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "wam/data/validate_meta.h"

namespace wam::data {

// A dim of fewer different values is a switch or coarsely quantised.
inline constexpr size_t kMaxDistinct = 16;

// Extremes and mean of one number of a column, and how often the extremes occur.
struct DimSummary {
  int64_t count = 0, at_min = 0, at_max = 0;
  double min = 0, max = 0, mean = 0;
  std::vector<double> distinct;  // the first kMaxDistinct different values, ascending
  int64_t outliers = 0;
  int64_t first_outlier_episode = -1, first_outlier_row = -1;
  double first_outlier = 0;
  std::string first_outlier_file;
  void add(double value);
  void merge(const DimSummary& other);
};
using ColumnSummaries = std::map<std::string, std::vector<DimSummary>>;

// Reads the table; adds its faults, and its state and action values to `summaries`. Returns the
// rows read, or -1 when the file cannot be read.
int64_t validate_table(const MetaView& meta, const Episode& episode, const ValidateOptions& options,
                       FaultList& faults, ColumnSummaries& summaries);

// Constant and clipped dims, outliers, statistics that do not belong to the data.
void validate_summaries(const MetaView& meta, const ColumnSummaries& summaries, FaultList& faults);

}  // namespace wam::data
