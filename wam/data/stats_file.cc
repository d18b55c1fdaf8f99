#include "wam/data/stats_file.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/json_fields.h"
#include "wam/data/lerobot_meta.h"
#include "wam/data/lerobot_v3.h"
#include "wam/data/parquet_reader.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using Table = std::map<std::string, std::vector<double>>;

// What can be summed over episodes.
const std::set<std::string> kSummable = {"min", "max", "mean", "std", "count"};

StatsByColumn parse_columns(const Json& json, const std::string& where) {
  StatsByColumn stats;
  for (const auto& [column, entry] : json.items()) {
    const std::string place = where + ": " + quote(column);
    if (!entry.is_object()) {
      throw DataError({.where = place,
                       .what = "statistics are not an object",
                       .expected = "{\"mean\": [...], ...}",
                       .remedy = "Compute them again with `wam stats`."});
    }
    for (const auto& [name, values] : entry.items()) {
      stats[column][name] = json_flat_numbers(values, place + "." + name);
    }
  }
  return stats;
}

// Sums of one column over episodes: mean and variance by the parallel formula of Chan et al.
struct RunningStats {
  double count = 0;
  std::vector<double> min, max, mean, squares;  // squares: sum of squared deviations

  void add(const Table& episode, const std::string& where);
  Table table() const;
};

const std::vector<double>& require(const Table& table, const char* name, size_t size,
                                   const std::string& where) {
  const auto found = table.find(name);
  const size_t got = found == table.end() ? 0 : found->second.size();
  if (got > 0 && (size == 0 || got == size)) return found->second;
  throw DataError({.where = where,
                   .what = "statistic '" + std::string(name) + "' is missing or of another length",
                   .got = std::to_string(got) + " values",
                   .expected = size == 0 ? "1 or more" : std::to_string(size),
                   .remedy = "Compute them again with `wam stats`."});
}

void RunningStats::add(const Table& episode, const std::string& where) {
  const std::vector<double>& means = require(episode, "mean", mean.size(), where);
  const size_t width = means.size();
  const std::vector<double>& stds = require(episode, "std", width, where);
  const std::vector<double>& mins = require(episode, "min", width, where);
  const std::vector<double>& maxs = require(episode, "max", width, where);
  const double added = require(episode, "count", 1, where).front();
  if (!(added > 0)) {
    throw DataError({.where = where,
                     .what = "count",
                     .got = std::to_string(added),
                     .expected = "above 0",
                     .remedy = "Compute them anew with wam stats."});
  }
  if (count == 0) {
    min = mins, max = maxs;
    mean.assign(width, 0);
    squares.assign(width, 0);
  }
  const double total = count + added;
  for (size_t i = 0; i < width; ++i) {
    const double delta = means[i] - mean[i];
    squares[i] += stds[i] * stds[i] * added + delta * delta * count * added / total;
    mean[i] += delta * added / total;
    min[i] = std::min(min[i], mins[i]);
    max[i] = std::max(max[i], maxs[i]);
  }
  count = total;
}

Table RunningStats::table() const {
  Table result{{"min", min}, {"max", max}, {"mean", mean}, {"count", {count}}};
  for (const double sum : squares) result["std"].push_back(std::sqrt(sum / count));
  return result;
}

}  // namespace

StatsByColumn read_stats_file(const fs::path& path) {
  return parse_columns(read_json_object(path), path.string());
}

StatsByColumn sum_episode_stats(const fs::path& path) {
  std::map<std::string, RunningStats> sums;
  for_each_line(path, [&](std::string_view line, const std::string& where) {
    const Json json = parse_json_object(line, where);
    const Json& stats = json_member(json, "stats", where);
    if (!stats.is_object())
      throw DataError({.where = where,
                       .what = "stats are not an object",
                       .remedy = "Compute them anew with wam stats."});
    for (const auto& [column, table] : parse_columns(stats, where)) {
      sums[column].add(table, where + ": " + quote(column));
    }
  });
  StatsByColumn stats;
  for (const auto& [column, sum] : sums) stats[column] = sum.table();
  return stats;
}

StatsByColumn sum_v3_episode_stats(const std::vector<fs::path>& files) {
  std::map<std::string, RunningStats> sums;
  for (const fs::path& file : files) {
    const ParquetReader reader(file);
    // FEATURE -> statistic -> values of every row; features have no "/".
    std::map<std::string, std::map<std::string, HostTensor>> columns;
    for (const ParquetColumnInfo& column : reader.columns()) {
      const size_t slash = column.name.rfind('/');
      if (!column.name.starts_with("stats/") || slash < 6) continue;
      const std::string name = column.name.substr(slash + 1);
      if (!kSummable.contains(name) || column.kind != ParquetKind::kNumber) continue;
      columns[column.name.substr(6, slash - 6)][name] = reader.read_numbers(column.name);
    }
    for (const auto& [feature, table] : columns) {
      for (int64_t row = 0; row < reader.num_rows(); ++row) {
        Table values;
        for (const auto& [name, tensor] : table) {
          const int64_t width = tensor.shape()[1];
          const auto part = tensor.as<double>().subspan(static_cast<size_t>(row * width),
                                                        static_cast<size_t>(width));
          values[name] = {part.begin(), part.end()};
        }
        sums[feature].add(values,
                          file.string() + ", row " + std::to_string(row) + ": " + quote(feature));
      }
    }
  }
  StatsByColumn stats;
  for (const auto& [column, sum] : sums) stats[column] = sum.table();
  return stats;
}

StatsByColumn read_dataset_stats(const fs::path& root) {
  const fs::path whole = root / "meta" / "stats.json";
  if (fs::exists(whole)) return read_stats_file(whole);
  const fs::path episodes = root / "meta" / "episodes_stats.jsonl";
  if (fs::exists(episodes)) return sum_episode_stats(episodes);
  if (fs::is_directory(root / "meta" / "episodes")) {
    return sum_v3_episode_stats(v3_episode_files(root));
  }
  return {};
}

StatsByColumn read_relative_stats(const fs::path& root) {
  const fs::path path = root / "meta" / "relative_stats_dreamzero.json";
  if (fs::exists(path)) return read_stats_file(path);
  return {};
}

}  // namespace wam::data
