// Which episodes, and which of their rows, a run uses of a dataset.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/index_ranges.h"
#include "wam/data/split.h"

namespace wam::data {

struct SelectionOptions {
  IndexRanges exclude_episodes;  // not used at all
  // Patterns of instructions, with * and ?, in any case of letters: an episode is used if one of
  // its tasks in the meta fits one of `tasks` (or there are none) and no task fits `exclude_tasks`.
  std::vector<std::string> tasks, exclude_tasks;
  SplitOptions split;    // of what is left
  IndexRanges episodes;  // train on these alone; empty: all that are not held out
  // "12[0:30,400:]": rows of episode 12 that no window may touch.
  std::vector<std::string> drop_frames;
};

struct Selection {
  EpisodeSplit split;
  std::map<int64_t, std::vector<RowRange>> dropped;  // by position; within the episode, ascending
  int64_t num_excluded = 0, num_other_tasks = 0, num_dropped_rows = 0;
  std::string text() const;  // what was left out; empty if nothing
};

// `where` names the section in messages ("dataset"). Throws ConfigError: an episode or range the
// dataset does not have, patterns that no task fits, rows beyond an episode's end, nothing left to
// train on, and as split_episodes(); DataError where tasks are asked for and the meta has none.
Selection select_episodes(const Dataset& dataset, const SelectionOptions& options,
                          const std::string& where);

// Whether `text` fits a pattern with * (any letters) and ? (one letter), in any case.
bool fits_pattern(std::string_view text, std::string_view pattern);

}  // namespace wam::data
