// Normalisation statistics of a dataset: min, max, mean, std, q01 and q99 of state and action
// slices, and of actions relative to the state at their chunk's first step. Percentiles are exact,
// as numpy.quantile's (linear interpolation); std is the population's. Memory does not grow with
// the dataset; tables are read a few times instead. The result depends on the data alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/embodiment.h"
#include "wam/data/norm_stats.h"

namespace wam::data {

// One slice to summarise.
struct StatsSlice {
  bool is_action = false;
  std::string key, column;
  int64_t begin = 0, end = 0;  // dims of the column
  // Relative: action at rows t .. t+horizon-1 minus this slice of the state at row t, over all t
  // whose chunk lies inside the episode. Empty: values as they are.
  std::string state_column;
  int64_t state_begin = 0;
  bool per_step = false;  // own statistics for each step of a chunk, as `per_horizon` slices need
  bool is_relative() const { return !state_column.empty(); }
  int64_t width() const { return end - begin; }
};

struct StatsOptions {
  int64_t horizon = 24;           // steps of a chunk, for relative slices
  bool per_step = false;          // all relative slices: own statistics for each step of a chunk
  std::vector<int64_t> episodes;  // indexes to use; empty: all
  std::function<void(int64_t done, int64_t total)> progress;  // episodes read, over all passes
};

// Slices of the dataset's modality; action keys in `relative` are made relative to the state slice
// of the same key. Throws ConfigError for a relative key without both slices of equal width.
std::vector<StatsSlice> modality_slices(const Dataset& dataset,
                                        const std::vector<std::string>& relative = {});
// Slices of an embodiment, whole keys; `per_horizon` ones by step.
std::vector<StatsSlice> embodiment_slices(const Dataset& dataset, const Embodiment& embodiment);

// Throws DataError as Dataset::read_columns does, or when a relative slice has no chunk because all
// episodes are shorter than the horizon.
NormStats compute_statistics(const Dataset& dataset, const std::vector<StatsSlice>& slices,
                             const StatsOptions& options = {});

// metadata.json in the public layout under `tag`, from the dataset's own modality and cameras.
std::string dataset_metadata_json(const Dataset& dataset, const std::string& tag,
                                  const NormStats& stats,
                                  const std::vector<std::string>& relative = {});
// The layout of meta/relative_stats_dreamzero.json: {key: {"mean": [...], ...}}.
std::string relative_stats_json(const std::map<std::string, KeyStats>& stats);

}  // namespace wam::data
