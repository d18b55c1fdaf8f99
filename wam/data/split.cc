#include "wam/data/split.h"

#include <algorithm>
#include <set>
#include <string>

#include "wam/base/error.h"
#include "wam/base/philox.h"

namespace wam::data {
namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& what, const std::string& got,
                         const std::string& expected) {
  throw ConfigError({.where = "dataset." + key,
                     .what = what,
                     .got = got,
                     .expected = expected,
                     .remedy = "Correct the key, or leave it out to hold nothing out."});
}

void check(const SplitOptions& o, size_t num_episodes) {
  const int given =
      !o.validation_episodes.empty() + (o.validation_last != 0) + (o.validation_fraction != 0);
  if (given > 1) {
    refuse("validation_episodes", "several ways to hold out episodes", std::to_string(given),
           "one of validation_episodes, validation_last, validation_fraction");
  }
  if (o.validation_last < 0 || o.validation_last >= static_cast<int64_t>(num_episodes)) {
    refuse("validation_last", "no episode would train", std::to_string(o.validation_last),
           "0 to " + std::to_string(static_cast<int64_t>(num_episodes) - 1));
  }
  if (!(o.validation_fraction >= 0 && o.validation_fraction < 1)) {
    refuse("validation_fraction", "value out of range", std::to_string(o.validation_fraction),
           "at least 0, below 1");
  }
}

void check_known(std::span<const Episode> episodes, const std::vector<int64_t>& wanted) {
  std::set<int64_t> known;
  for (const Episode& episode : episodes) known.insert(episode.index);
  for (int64_t index : wanted) {
    if (!known.contains(index)) {
      refuse("validation_episodes", "dataset has no such episode", std::to_string(index),
             std::to_string(*known.begin()) + " to " + std::to_string(*known.rbegin()));
    }
  }
}

bool is_held_out(const Episode& episode, int64_t position, int64_t num_episodes,
                 const SplitOptions& o) {
  const auto& listed = o.validation_episodes;
  if (std::find(listed.begin(), listed.end(), episode.index) != listed.end()) return true;
  if (position >= num_episodes - o.validation_last) return true;
  Random random(o.seed, RandomUse::kSampleOrder, ~uint64_t{0},
                static_cast<uint64_t>(episode.index));
  return random.uniform() < o.validation_fraction;
}

}  // namespace

EpisodeSplit split_episodes(std::span<const Episode> episodes, const SplitOptions& options) {
  if (episodes.empty()) return {};
  check(options, episodes.size());
  check_known(episodes, options.validation_episodes);
  EpisodeSplit split;
  const int64_t n = std::ssize(episodes);
  for (int64_t i = 0; i < n; ++i) {
    const bool held_out = is_held_out(episodes[static_cast<size_t>(i)], i, n, options);
    (held_out ? split.validation : split.train).push_back(i);
  }
  if (split.train.empty()) {
    refuse("validation_episodes", "every episode is held out", std::to_string(n),
           "some to train on");
  }
  if (options.validation_fraction > 0 && split.validation.empty()) {
    refuse("validation_fraction", "no episode is held out",
           std::to_string(options.validation_fraction) + " of " + std::to_string(n) + " episodes",
           "a larger share, or validation_last");
  }
  return split;
}

}  // namespace wam::data
