// meta/episodes.jsonl and meta/tasks.jsonl of LeRobot v2. Keys are in the lines; the place of a
// line means nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wam/data/dataset.h"

namespace wam::data {

// Two years of frames at 1000 Hz: a larger index or length is damage, and sums stay below 2^63.
inline constexpr int64_t kMaxLength = int64_t{1} << 36;

// Calls visit(line, "file:number") for every line that is not blank. Throws DataError when the file
// is absent.
void for_each_line(const std::filesystem::path& path,
                   const std::function<void(std::string_view, const std::string&)>& visit);

// {"episode_index": 0, "tasks": ["..."], "length": 416}; tasks may be absent. Throws DataError:
// not JSON, fields missing or of another type, a negative index, a length below 1.
Episode parse_episode_line(std::string_view line, const std::string& where);

// Throws DataError at `where`: a negative index, a length below 1, or either beyond all reason.
void check_episode(const Episode& episode, const std::string& where);

struct TaskLine {
  int64_t index = 0;
  std::string text;
};
// {"task_index": 0, "task": "..."}.
TaskLine parse_task_line(std::string_view line, const std::string& where);

// All episodes, ascending by index. Throws DataError: a line's fault, an index given twice, none.
std::vector<Episode> read_episodes(const std::filesystem::path& root);
// Empty when the file is absent. Throws DataError: a line's fault, an index given twice.
std::map<int64_t, std::string> read_tasks(const std::filesystem::path& root);

}  // namespace wam::data
