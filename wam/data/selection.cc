#include "wam/data/selection.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"

namespace wam::data {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& got,
                         const std::string& expected, const std::string& remedy) {
  throw ConfigError(
      {.where = where, .what = what, .got = got, .expected = expected, .remedy = remedy});
}

bool fits_any(const std::string& task, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return fits_pattern(task, pattern); });
}

// Counts which patterns were of use.
class TaskFilter {
 public:
  TaskFilter(const Dataset& dataset, const SelectionOptions& options, const std::string& where)
      : dataset_(dataset), options_(options), where_(where) {}

  bool is_on() const { return !options_.tasks.empty() || !options_.exclude_tasks.empty(); }
  bool keeps(const Episode& episode) const {
    if (episode.tasks.empty()) {
      throw DataError(
          {.where = dataset_.root().string() + ", episode " + std::to_string(episode.index),
           .what = "the meta names no task, so that none can be chosen",
           .remedy = "Leave out " + where_ + ".tasks, or choose by episodes."});
    }
    bool wanted = options_.tasks.empty();
    for (const std::string& task : episode.tasks) {
      if (fits_any(task, options_.exclude_tasks)) return false;
      wanted = wanted || fits_any(task, options_.tasks);
    }
    return wanted;
  }
  // A pattern that fits nothing is a misspelling.
  void check_used(const std::vector<std::string>& patterns, const char* key) const {
    for (const std::string& pattern : patterns) {
      const auto& tasks = dataset_.tasks();
      const bool is_used = std::any_of(tasks.begin(), tasks.end(), [&](const auto& task) {
        return fits_pattern(task.second, pattern);
      });
      if (is_used || tasks.empty()) continue;
      std::vector<std::string> known;
      for (const auto& [index, text] : tasks) {
        if (known.size() < 1000) known.push_back(text);
      }
      refuse(where_ + "." + key, "no task of the dataset fits the pattern", quote(pattern),
             "a task, with * for any letters", name_hint(pattern, known));
    }
  }

 private:
  const Dataset& dataset_;
  const SelectionOptions& options_;
  std::string where_;
};

std::vector<RowRange> parse_drop(const std::string& text, const std::string& where,
                                 int64_t& episode) {
  const size_t bracket = text.find('[');
  if (bracket == std::string::npos || !text.ends_with(']')) {
    refuse(where, "not rows of an episode", quote(text), "EPISODE[BEGIN:END,...]",
           "Write it as \"12[0:30,400:]\".");
  }
  const RowRange index = parse_row_range(std::string_view(text).substr(0, bracket), where);
  if (index.end != index.begin + 1) {
    refuse(where, "rows of several episodes at once", quote(text), "one episode",
           "Write an entry for each.");
  }
  episode = index.begin;
  std::vector<RowRange> rows;
  const std::string inside = text.substr(bracket + 1, text.size() - bracket - 2);
  for (const std::string& part : split(inside, ',')) rows.push_back(parse_row_range(part, where));
  return rows;
}

// Position of an episode in the dataset's list, or -1.
int64_t find_position(std::span<const Episode> episodes, int64_t index) {
  const auto found = std::lower_bound(episodes.begin(), episodes.end(), index,
                                      [](const Episode& e, int64_t i) { return e.index < i; });
  return found == episodes.end() || found->index != index ? -1 : found - episodes.begin();
}

void add_drops(const Dataset& dataset, const SelectionOptions& options, const std::string& where,
               Selection& selection) {
  const std::string key = where + ".drop_frames";
  for (const std::string& text : options.drop_frames) {
    int64_t index = 0;
    std::vector<RowRange> rows = parse_drop(text, key, index);
    const int64_t position = find_position(dataset.episodes(), index);
    if (position < 0) {
      refuse(key, "the dataset has no such episode", std::to_string(index),
             "an episode_index of its meta", "Correct the number.");
    }
    const int64_t length = dataset.episodes()[static_cast<size_t>(position)].length;
    for (RowRange& range : rows) {
      if (range.end == IndexRanges::kNoEnd) range.end = length;
      if (range.begin < length && range.end <= length) continue;
      refuse(key, "rows beyond the end of the episode", quote(text),
             "rows within 0:" + std::to_string(length), "Correct the range.");
    }
    auto& all = selection.dropped[position];
    all.insert(all.end(), rows.begin(), rows.end());
  }
  for (auto& [position, rows] : selection.dropped) {
    rows = merged(std::move(rows));
    for (const RowRange& range : rows) selection.num_dropped_rows += range.end - range.begin;
  }
}

}  // namespace

bool fits_pattern(std::string_view text, std::string_view pattern) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  // Where to go on if the last * has to take a letter more.
  size_t t = 0, p = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || lower(pattern[p]) == lower(text[t]))) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string Selection::text() const {
  std::vector<std::string> parts;
  if (num_excluded > 0) parts.push_back(std::to_string(num_excluded) + " episodes excluded");
  if (num_other_tasks > 0) {
    parts.push_back(std::to_string(num_other_tasks) + " episodes of other tasks");
  }
  if (num_dropped_rows > 0) {
    parts.push_back(std::to_string(num_dropped_rows) + " rows of " +
                    std::to_string(dropped.size()) + " episodes dropped");
  }
  return parts.empty() ? "" : "left out by the configuration: " + join(parts, ", ");
}

Selection select_episodes(const Dataset& dataset, const SelectionOptions& options,
                          const std::string& where) {
  const std::vector<Episode>& episodes = dataset.episodes();
  check_known(episodes, options.exclude_episodes, where + ".exclude_episodes");
  check_known(episodes, options.episodes, where + ".episodes");
  const TaskFilter filter(dataset, options, where);
  if (filter.is_on()) {
    filter.check_used(options.tasks, "tasks");
    filter.check_used(options.exclude_tasks, "exclude_tasks");
  }
  Selection selection;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < std::ssize(episodes); ++i) {
    const Episode& episode = episodes[static_cast<size_t>(i)];
    if (options.exclude_episodes.contains(episode.index)) {
      ++selection.num_excluded;
    } else if (filter.is_on() && !filter.keeps(episode)) {
      ++selection.num_other_tasks;
    } else {
      positions.push_back(i);
    }
  }
  if (positions.empty()) {
    refuse(where, "no episode is left", std::to_string(episodes.size()) + " left out",
           "some to train on", "Loosen exclude_episodes, tasks or exclude_tasks.");
  }
  selection.split = split_episodes(episodes, positions, options.split, where);
  if (!options.episodes.empty()) {
    std::erase_if(selection.split.train, [&](int64_t position) {
      return !options.episodes.contains(episodes[static_cast<size_t>(position)].index);
    });
    if (selection.split.train.empty()) {
      refuse(where + ".episodes", "none of these is left to train on", "all held out or left out",
             "some to train on", "Name others, or hold out fewer.");
    }
  }
  add_drops(dataset, options, where, selection);
  return selection;
}

}  // namespace wam::data
