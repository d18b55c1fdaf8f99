#include "wam/data/lerobot_meta.h"

#include <algorithm>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/strings.h"
#include "wam/data/json_fields.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& got,
                       const std::string& expected) {
  throw DataError({.where = where,
                   .what = what,
                   .got = got,
                   .expected = expected,
                   .remedy = "Correct the line or remove it."});
}

}  // namespace

void for_each_line(const fs::path& path,
                   const std::function<void(std::string_view, const std::string&)>& visit) {
  const MappedFile file(path);
  const std::string name = path.string();
  std::string_view rest = file.text();
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trim(rest.substr(0, end));
    if (!line.empty()) visit(line, name + ":" + std::to_string(number));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void check_episode(const Episode& episode, const std::string& where) {
  if (episode.index < 0 || episode.index > kMaxLength) {
    fail(where, "episode_index out of bounds", std::to_string(episode.index), "0 or more");
  }
  if (episode.length < 1 || episode.length > kMaxLength) {
    fail(where, "length out of bounds", std::to_string(episode.length), "1 or more rows");
  }
}

Episode parse_episode_line(std::string_view line, const std::string& where) {
  const Json json = parse_json_object(line, where);
  Episode episode;
  episode.index = json_int(json, "episode_index", where);
  episode.length = json_int(json, "length", where);
  check_episode(episode, where);
  const auto tasks = json.find("tasks");
  if (tasks != json.end() && !tasks->is_null()) episode.tasks = json_strings(*tasks, where);
  return episode;
}

TaskLine parse_task_line(std::string_view line, const std::string& where) {
  const Json json = parse_json_object(line, where);
  return {json_int(json, "task_index", where), json_string(json, "task", where)};
}

std::vector<Episode> read_episodes(const fs::path& root) {
  const fs::path path = root / "meta" / "episodes.jsonl";
  std::vector<Episode> episodes;
  for_each_line(path, [&](std::string_view line, const std::string& where) {
    episodes.push_back(parse_episode_line(line, where));
  });
  if (episodes.empty()) {
    throw DataError({.where = path.string(),
                     .what = "dataset is empty",
                     .got = "no episodes",
                     .expected = "1 or more",
                     .remedy = "Record or restore episodes."});
  }
  std::stable_sort(episodes.begin(), episodes.end(),
                   [](const Episode& a, const Episode& b) { return a.index < b.index; });
  const auto twice =
      std::adjacent_find(episodes.begin(), episodes.end(),
                         [](const Episode& a, const Episode& b) { return a.index == b.index; });
  if (twice != episodes.end()) {
    fail(path.string(), "episode_index given twice", std::to_string(twice->index),
         "one line an episode");
  }
  return episodes;
}

std::map<int64_t, std::string> read_tasks(const fs::path& root) {
  const fs::path path = root / "meta" / "tasks.jsonl";
  std::map<int64_t, std::string> tasks;
  if (!fs::exists(path)) return tasks;
  for_each_line(path, [&](std::string_view line, const std::string& where) {
    TaskLine task = parse_task_line(line, where);
    if (tasks.emplace(task.index, std::move(task.text)).second) return;
    fail(where, "task_index given twice", std::to_string(task.index), "one line a task");
  });
  return tasks;
}

}  // namespace wam::data
