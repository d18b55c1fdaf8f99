// Statistics as datasets carry them: meta/stats.json (whole dataset), meta/episodes_stats.jsonl
// (one line an episode, v2.1) and meta/relative_stats_dreamzero.json.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace wam::data {

// column or slice -> name ("q01") -> values, nested lists in one row.
using StatsByColumn = std::map<std::string, std::map<std::string, std::vector<double>>>;

// meta/stats.json, else the sum of meta/episodes_stats.jsonl, or of meta/episodes' columns
// stats/FEATURE/STATISTIC in v3.0 (min, max, mean, std, count: quantiles
// cannot be summed), else empty. Throws DataError: not JSON, entries that are not numbers.
StatsByColumn read_dataset_stats(const std::filesystem::path& root);
// meta/relative_stats_dreamzero.json, else empty.
StatsByColumn read_relative_stats(const std::filesystem::path& root);

// One file in the layout of stats.json.
StatsByColumn read_stats_file(const std::filesystem::path& path);
// Whole-dataset statistics from those of the episodes, weighted by `count`.
StatsByColumn sum_episode_stats(const std::filesystem::path& path);
StatsByColumn sum_v3_episode_stats(const std::vector<std::filesystem::path>& files);

}  // namespace wam::data
