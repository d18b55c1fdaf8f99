// Which episodes train and which are held out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wam/data/dataset.h"

namespace wam::data {

// At most one of the three is set; none: no episode is held out.
struct SplitOptions {
  std::vector<int64_t> validation_episodes;  // by episode_index
  int64_t validation_last = 0;               // the last n episodes
  // Share of episodes, decided for each by (seed, episode_index): episodes added later do not move
  // the others.
  double validation_fraction = 0;
  uint64_t seed = 0;
};

// Positions in the dataset's list of episodes, ascending.
struct EpisodeSplit {
  std::vector<int64_t> train, validation;
};

// Throws ConfigError: several options at once, an episode the dataset does not have, values out of
// range, or a split that leaves a side empty.
EpisodeSplit split_episodes(std::span<const Episode> episodes, const SplitOptions& options);

}  // namespace wam::data
