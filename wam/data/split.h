// Which episodes train and which are held out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/index_ranges.h"

namespace wam::data {

// At most one of the three is set; none: no episode is held out.
struct SplitOptions {
  IndexRanges validation_episodes;  // by episode_index
  int64_t validation_last = 0;      // the last n episodes
  // Share of episodes, decided for each by (seed, episode_index): episodes added later do not move
  // the others.
  double validation_fraction = 0;
  uint64_t seed = 0;
};

// Positions in the dataset's list of episodes, ascending.
struct EpisodeSplit {
  std::vector<int64_t> train, validation;
};

// Splits the episodes at `positions` (ascending). `where` names the section in messages. Throws
// ConfigError: several options at once, an episode the dataset does not have, values out of range,
// or a split that leaves a side empty.
EpisodeSplit split_episodes(std::span<const Episode> episodes, std::span<const int64_t> positions,
                            const SplitOptions& options, const std::string& where = "dataset");
// All of them.
EpisodeSplit split_episodes(std::span<const Episode> episodes, const SplitOptions& options);

// Throws ConfigError at `where` for an index that no episode has, or a range without any.
void check_known(std::span<const Episode> episodes, const IndexRanges& wanted,
                 const std::string& where);

}  // namespace wam::data
