// What the values of all episodes say together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wam/base/quote.h"
#include "wam/data/validate_table.h"

namespace wam::data {
namespace {

// Share of rows at an extreme from which a dim counts as clipped there, and share at both extremes
// from which it is a switch (a gripper that is open or closed) and not clipped.
constexpr double kClippedShare = 0.1, kSwitchShare = 0.9;
// Difference of means that counts, as a share of the dim's range.
constexpr double kMeanSlack = 0.02;

// "0-2,5": dims for which `belongs` holds, and how many.
template <typename Belongs>
std::pair<std::string, int64_t> list_dims(const std::vector<DimSummary>& dims, Belongs&& belongs) {
  std::string text;
  int64_t count = 0;
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    if (!belongs(dims[dim])) continue;
    size_t last = dim;
    while (last + 1 < dims.size() && belongs(dims[last + 1])) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(dim);
    if (last > dim) text += "-" + std::to_string(last);
    count += static_cast<int64_t>(last - dim + 1);
    dim = last;
  }
  return {text, count};
}

bool is_constant(const DimSummary& dim) { return dim.count > 1 && dim.min == dim.max; }

bool is_clipped(const DimSummary& dim) {
  if (dim.count < 20 || dim.distinct.size() < kMaxDistinct) return false;
  const auto share = [&](int64_t rows) {
    return static_cast<double>(rows) / static_cast<double>(dim.count);
  };
  return share(dim.at_min + dim.at_max) < kSwitchShare &&
         share(std::max(dim.at_min, dim.at_max)) >= kClippedShare;
}

void check_dims(const std::string& column, const std::vector<DimSummary>& dims, FaultList& faults) {
  const auto [constant, num_constant] = list_dims(dims, is_constant);
  if (num_constant > 0) {
    faults.add({.code = "dim-constant",
                .severity = Severity::kNote,
                .count = num_constant,
                .what = quote(column) + " dims " + constant + " never change",
                .remedy = "They carry no information: leave them out of the config's slices."});
  }
  const auto [clipped, num_clipped] = list_dims(dims, is_clipped);
  if (num_clipped > 0) {
    faults.add({.code = "dim-clipped",
                .severity = Severity::kWarning,
                .count = num_clipped,
                .what = quote(column) + " dims " + clipped +
                        " lie at their extreme value in a tenth of all rows or more",
                .remedy = "Check whether the recorder cut the values off."});
  }
}

const std::vector<double>* find_stat(const MetaView& meta, const std::string& column,
                                     const char* name, size_t size) {
  const auto stats = meta.stats.find(column);
  if (stats == meta.stats.end()) return nullptr;
  const auto values = stats->second.find(name);
  const bool fits = values != stats->second.end() && values->second.size() == size;
  return fits ? &values->second : nullptr;
}

void check_outliers(const MetaView& meta, const std::string& column,
                    const std::vector<DimSummary>& dims, FaultList& faults) {
  const std::vector<double>* low = find_stat(meta, column, "q01", dims.size());
  const std::vector<double>* high = find_stat(meta, column, "q99", dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const DimSummary& dim = dims[i];
    if (dim.outliers == 0 || low == nullptr || high == nullptr) continue;
    faults.add({.code = "value-outlier",
                .severity = Severity::kWarning,
                .file = dim.first_outlier_file,
                .episode = dim.first_outlier_episode,
                .row = dim.first_outlier_row,
                .count = dim.outliers,
                .what = fmt::format(
                    "{} dim {} is {:.6g}, far outside q01 to q99 of meta/stats.json, {:.6g}"
                    " to {:.6g}",
                    quote(column), i, dim.first_outlier, (*low)[i], (*high)[i]),
                .remedy = "Look at the rows; leave the episode out if the robot was not there."});
  }
}

void check_mean(const MetaView& meta, const std::string& column,
                const std::vector<DimSummary>& dims, FaultList& faults) {
  const std::vector<double>* mean = find_stat(meta, column, "mean", dims.size());
  if (mean == nullptr) return;
  for (size_t i = 0; i < dims.size(); ++i) {
    const double range = dims[i].max - dims[i].min;
    const double slack = kMeanSlack * range + 1e-4 * std::abs(dims[i].mean) + 1e-9;
    if (dims[i].count == 0 || std::abs(dims[i].mean - (*mean)[i]) <= slack) continue;
    faults.add({.code = "stats-mismatch",
                .severity = Severity::kWarning,
                .file = (meta.root / "meta/stats.json").string(),
                .what = quote(column) + " dim " + std::to_string(i) + " has mean " +
                        std::to_string(dims[i].mean) + ", meta/stats.json says " +
                        std::to_string((*mean)[i]),
                .remedy = "The statistics belong to other data: compute them with `wam stats`."});
    return;
  }
}

}  // namespace

void validate_summaries(const MetaView& meta, const ColumnSummaries& summaries, FaultList& faults) {
  for (const auto& [column, dims] : summaries) {
    check_dims(column, dims, faults);
    check_outliers(meta, column, dims, faults);
    check_mean(meta, column, dims, faults);
  }
}

}  // namespace wam::data
