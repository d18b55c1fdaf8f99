#include "wam/data/split.h"

#include <algorithm>
#include <numeric>

#include "wam/base/error.h"
#include "wam/base/philox.h"

namespace wam::data {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& got,
                         const std::string& expected) {
  throw ConfigError({.where = where,
                     .what = what,
                     .got = got,
                     .expected = expected,
                     .remedy = "Correct the key, or leave it out to hold nothing out."});
}

void check(const SplitOptions& o, size_t num_episodes, const std::string& where) {
  const int given =
      !o.validation_episodes.empty() + (o.validation_last != 0) + (o.validation_fraction != 0);
  if (given > 1) {
    refuse(where + ".validation_episodes", "several ways to hold out episodes",
           std::to_string(given),
           "one of validation_episodes, validation_last, validation_fraction");
  }
  if (o.validation_last < 0 || o.validation_last >= static_cast<int64_t>(num_episodes)) {
    refuse(where + ".validation_last", "no episode would train", std::to_string(o.validation_last),
           "0 to " + std::to_string(static_cast<int64_t>(num_episodes) - 1));
  }
  if (!(o.validation_fraction >= 0 && o.validation_fraction < 1)) {
    refuse(where + ".validation_fraction", "value out of range",
           std::to_string(o.validation_fraction), "at least 0, below 1");
  }
}

bool is_held_out(const Episode& episode, const SplitOptions& o) {
  if (o.validation_episodes.contains(episode.index)) return true;
  if (o.validation_fraction == 0) return false;
  Random random(o.seed, RandomUse::kSampleOrder, ~uint64_t{0},
                static_cast<uint64_t>(episode.index));
  return random.uniform() < o.validation_fraction;
}

}  // namespace

void check_known(std::span<const Episode> episodes, const IndexRanges& wanted,
                 const std::string& where) {
  for (const RowRange& range : wanted.ranges()) {
    const auto first = std::lower_bound(episodes.begin(), episodes.end(), range.begin,
                                        [](const Episode& e, int64_t i) { return e.index < i; });
    if (first != episodes.end() && first->index < range.end) continue;
    refuse(where, "dataset has no such episode", to_text(range),
           std::to_string(episodes.front().index) + " to " + std::to_string(episodes.back().index));
  }
}

EpisodeSplit split_episodes(std::span<const Episode> episodes, std::span<const int64_t> positions,
                            const SplitOptions& options, const std::string& where) {
  if (episodes.empty()) return {};
  check(options, positions.size(), where);
  check_known(episodes, options.validation_episodes, where + ".validation_episodes");
  EpisodeSplit split;
  const int64_t n = std::ssize(positions);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t position = positions[static_cast<size_t>(i)];
    const bool held_out = i >= n - options.validation_last ||
                          is_held_out(episodes[static_cast<size_t>(position)], options);
    (held_out ? split.validation : split.train).push_back(position);
  }
  if (split.train.empty()) {
    refuse(where + ".validation_episodes", "every episode is held out", std::to_string(n),
           "some to train on");
  }
  if (options.validation_fraction > 0 && split.validation.empty()) {
    refuse(where + ".validation_fraction", "no episode is held out",
           std::to_string(options.validation_fraction) + " of " + std::to_string(n) + " episodes",
           "a larger share, or validation_last");
  }
  return split;
}

EpisodeSplit split_episodes(std::span<const Episode> episodes, const SplitOptions& options) {
  std::vector<int64_t> positions(episodes.size());
  std::iota(positions.begin(), positions.end(), 0);
  return split_episodes(episodes, positions, options);
}

}  // namespace wam::data
