#include "wam/data/validate_meta.h"

#include <algorithm>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/base/strings.h"
#include "wam/data/coded_error.h"
#include "wam/data/json_fields.h"
#include "wam/data/lerobot_meta.h"
#include "wam/data/lerobot_v2.h"
#include "wam/data/modality.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

// One line of what, got and expected, without the place, which the fault holds in its own fields.
std::string sentence(const ErrorInfo& info, const std::string& file) {
  std::string text = info.what;
  if (!info.got.empty()) text += ", got " + info.got;
  if (!info.expected.empty()) text += ", expected " + info.expected;
  // What the place says beyond the file: line, column, row.
  if (info.where.starts_with(file) && info.where.size() > file.size() + 1) {
    std::string place = info.where.substr(file.size() + 1);
    while (place.starts_with(' ')) place.erase(0, 1);
    text = place + ": " + text;
  }
  return text;
}

void read_episode_lines(const fs::path& path, MetaView& meta, FaultList& faults) {
  std::set<int64_t> seen;
  for_each_line(path, [&](std::string_view line, const std::string& where) {
    try {
      Episode episode = parse_episode_line(line, where);
      if (!seen.insert(episode.index).second) {
        faults.add({.code = "episode-duplicate",
                    .file = path.string(),
                    .episode = episode.index,
                    .what = "episode_index " + std::to_string(episode.index) + " given twice",
                    .remedy = "Remove one of the lines."});
        return;
      }
      meta.episodes.push_back(std::move(episode));
    } catch (const DataError& error) {
      faults.add("episode-line-invalid", Severity::kError, error, path);
    }
  });
  std::sort(meta.episodes.begin(), meta.episodes.end(),
            [](const Episode& a, const Episode& b) { return a.index < b.index; });
}

void check_gaps(const fs::path& path, const MetaView& meta, FaultList& faults) {
  int64_t expected = 0, missing = 0, first = -1;
  for (const Episode& episode : meta.episodes) {
    if (episode.index != expected && first < 0) first = expected;
    missing += episode.index - expected;
    expected = episode.index + 1;
  }
  if (missing == 0) return;
  faults.add({.code = "episode-gap",
              .severity = Severity::kWarning,
              .file = path.string(),
              .count = missing,
              .what = "episode indexes are not 0, 1, 2, ...: the first that is missing is " +
                      std::to_string(first),
              .remedy = "Harmless if episodes were removed on purpose."});
}

void read_episode_meta(MetaView& meta, FaultList& faults) {
  const fs::path path = meta.root / meta.episodes_file();
  meta.layout = make_layout_v2(meta.root, *meta.info);
  try {
    read_episode_lines(path, meta, faults);
  } catch (const DataError& error) {
    faults.add("meta-missing", Severity::kError, error, path);
  }
}

void check_episodes(const MetaView& meta, FaultList& faults) {
  const fs::path path = meta.root / meta.episodes_file();
  if (!meta.episodes.empty()) return check_gaps(path, meta, faults);
  if (!fs::exists(path)) return;  // reported
  faults.add({.code = "dataset-empty",
              .file = path.string(),
              .what = "dataset is empty: no episodes",
              .remedy = "Record or restore episodes."});
}

void read_task_meta(MetaView& meta, FaultList& faults) {
  const fs::path path = meta.root / meta.tasks_file();
  if (!fs::exists(path)) {
    faults.add({.code = "meta-missing",
                .severity = Severity::kWarning,
                .file = path.string(),
                .what = "tasks.jsonl is missing: there are no instructions by task_index",
                .remedy = "Restore the file, or name columns with instructions in the config."});
    return;
  }
  for_each_line(path, [&](std::string_view line, const std::string& where) {
    try {
      TaskLine task = parse_task_line(line, where);
      if (meta.tasks.emplace(task.index, std::move(task.text)).second) return;
      faults.add({.code = "task-duplicate",
                  .file = path.string(),
                  .what = "task_index " + std::to_string(task.index) + " given twice",
                  .remedy = "Remove one of the lines."});
    } catch (const DataError& error) {
      faults.add("task-line-invalid", Severity::kError, error, path);
    }
  });
}

void check_task_names(const MetaView& meta, FaultList& faults) {
  if (meta.tasks.empty()) return;
  std::set<std::string> known;
  for (const auto& [index, text] : meta.tasks) known.insert(text);
  for (const Episode& episode : meta.episodes) {
    for (const std::string& task : episode.tasks) {
      if (known.contains(task)) continue;
      faults.add({.code = "task-unlisted",
                  .severity = Severity::kWarning,
                  .file = (meta.root / meta.episodes_file()).string(),
                  .episode = episode.index,
                  .what = "task " + quote(task) + " is not in " + meta.tasks_file(),
                  .remedy = std::string("Add it to ") + meta.tasks_file() + "."});
    }
  }
}

void check_counts(const MetaView& meta, FaultList& faults) {
  const LerobotInfo& info = *meta.info;
  int64_t frames = 0;
  for (const Episode& episode : meta.episodes) frames += episode.length;
  const auto check = [&](const char* field, int64_t said, int64_t found) {
    if (said < 0 || said == found) return;
    faults.add({.code = "count-mismatch",
                .severity = Severity::kWarning,
                .file = (meta.root / "meta/info.json").string(),
                .what = std::string(field) + " is " + std::to_string(said) +
                        ", but the meta lists " + std::to_string(found),
                .remedy = "Correct the number in meta/info.json."});
  };
  check("total_episodes", info.total_episodes, std::ssize(meta.episodes));
  check("total_frames", info.total_frames, frames);
  if (!meta.tasks.empty()) check("total_tasks", info.total_tasks, std::ssize(meta.tasks));
}

void check_default_columns(const MetaView& meta, FaultList& faults) {
  std::vector<std::string> missing;
  for (const char* column : {"timestamp", "frame_index", "episode_index", "index", "task_index"}) {
    if (meta.info->find_feature(column) == nullptr) missing.push_back(column);
  }
  if (missing.empty()) return;
  faults.add({.code = "column-default",
              .severity = Severity::kNote,
              .file = (meta.root / "meta/info.json").string(),
              .count = std::ssize(missing),
              .what = "LeRobot's default columns not listed: " + join(missing, ", "),
              .remedy = "Harmless: rows are counted."});
}

void leave_out_discarded(MetaView& meta, FaultList& faults) {
  const std::vector<int64_t>& listed = meta.info->discarded_episodes;
  if (listed.empty()) return;
  const std::set<int64_t> discarded(listed.begin(), listed.end());
  const auto is_discarded = [&](const Episode& e) { return discarded.contains(e.index); };
  const int64_t count = std::ssize(meta.episodes);
  std::copy_if(meta.episodes.begin(), meta.episodes.end(), std::back_inserter(meta.discarded),
               is_discarded);
  std::erase_if(meta.episodes, is_discarded);
  faults.add({.code = "episode-discarded",
              .severity = Severity::kNote,
              .file = (meta.root / "meta/info.json").string(),
              .count = count - std::ssize(meta.episodes),
              .what = "episodes are listed in discarded_episode_indices and not read"});
}

void check_modality(MetaView& meta, FaultList& faults) {
  const fs::path path = meta.root / "meta" / "modality.json";
  try {
    meta.modality = read_modality(meta.root, meta.info->features);
  } catch (const DataError& error) {
    faults.add("modality-invalid", Severity::kError, error, path);
    meta.modality = default_modality(meta.info->features);
    return;
  }
  const auto check = [&](const char* group, const std::string& key, const std::string& column) {
    if (meta.info->find_feature(column) != nullptr) return;
    faults.add({.code = "modality-column",
                .severity = Severity::kWarning,
                .file = path.string(),
                .what = std::string(group) + "." + quote(key) + " is of " + quote(column) +
                        ", which meta/info.json does not list",
                .remedy = "Correct meta/modality.json or meta/info.json."});
  };
  for (const ModalitySlice& slice : meta.modality.state) {
    check("state", slice.key, slice.original_key);
  }
  for (const ModalitySlice& slice : meta.modality.action) {
    check("action", slice.key, slice.original_key);
  }
  for (const auto& [key, column] : meta.modality.video) check("video", key, column);
  for (const auto& [key, column] : meta.modality.annotation) check("annotation", key, column);
}

void read_episode_stats(const fs::path& path, MetaView& meta, FaultList& faults) {
  for_each_line(path, [&](std::string_view line, const std::string& where) {
    try {
      const Json json = parse_json_object(line, where);
      const int64_t episode = json_int(json, "episode_index", where);
      const Json& stats = json_member(json, "stats", where);
      for (const auto& [column, entry] : stats.items()) {
        for (const auto& [name, values] : entry.items()) {
          meta.episode_stats[episode][column][name] =
              json_flat_numbers(values, where + ": " + quote(column) + "." + name);
        }
      }
    } catch (const DataError& error) {
      faults.add("stats-invalid", Severity::kError, error, path);
    }
  });
}

void check_widths(const StatsByColumn& stats, const MetaView& meta, const fs::path& path,
                  FaultList& faults) {
  for (const std::string& column : state_and_action_columns(meta.modality)) {
    const Feature* feature = meta.info->find_feature(column);
    const auto found = stats.find(column);
    if (feature == nullptr || found == stats.end()) continue;
    for (const auto& [name, values] : found->second) {
      if (name == "count" || std::ssize(values) == feature->width()) continue;
      faults.add({.code = "stats-width",
                  .file = path.string(),
                  .what = quote(column) + "." + name + " has " + std::to_string(values.size()) +
                          " values, expected " + std::to_string(feature->width()),
                  .remedy = "Compute statistics again with `wam stats`."});
      break;
    }
  }
}

void check_stats(MetaView& meta, FaultList& faults) {
  const fs::path whole = meta.root / "meta" / "stats.json";
  const fs::path episodes = meta.root / "meta" / "episodes_stats.jsonl";
  if (fs::exists(episodes)) read_episode_stats(episodes, meta, faults);
  if (!fs::exists(whole)) {
    faults.add({.code = "stats-missing",
                .severity = Severity::kNote,
                .file = whole.string(),
                .what = "no statistics of the whole dataset with q01 and q99",
                .remedy = "Compute them with `wam stats`."});
    return;
  }
  try {
    meta.stats = read_stats_file(whole);
    check_widths(meta.stats, meta, whole, faults);
  } catch (const DataError& error) {
    faults.add("stats-invalid", Severity::kError, error, whole);
  }
}

}  // namespace

std::string FaultList::relative(const fs::path& file) const {
  const std::string root = root_.string() + "/", path = file.string();
  return path.starts_with(root) ? path.substr(root.size()) : path;
}

void FaultList::add(Fault fault) {
  fault.file = relative(fault.file);
  faults_.push_back(std::move(fault));
}

void FaultList::add(const std::string& code, Severity severity, const DataError& error,
                    const fs::path& file, int64_t episode, int64_t row) {
  add({.code = code_of(error, code),
       .severity = severity,
       .file = file.string(),
       .episode = episode,
       .row = row,
       .what = sentence(error.info(), file.string()),
       .remedy = error.info().remedy});
}

std::set<std::string> state_and_action_columns(const Modality& modality) {
  std::set<std::string> columns;
  for (const ModalitySlice& slice : modality.state) columns.insert(slice.original_key);
  for (const ModalitySlice& slice : modality.action) columns.insert(slice.original_key);
  return columns;
}

MetaView validate_meta(const fs::path& root, FaultList& faults) {
  MetaView meta{.root = root};
  try {
    meta.info = read_lerobot_info(root);
  } catch (const DataError& error) {
    const bool is_there = fs::exists(root / "meta" / "info.json");
    faults.add(is_there ? "info-invalid" : "dataset-missing", Severity::kError, error,
               is_there ? root / "meta" / "info.json" : root);
    return meta;
  }
  if (meta.is_v3()) {
    validate_meta_v3(meta, faults);
  } else {
    read_episode_meta(meta, faults);
    read_task_meta(meta, faults);
  }
  check_episodes(meta, faults);
  check_task_names(meta, faults);
  check_counts(meta, faults);
  check_default_columns(meta, faults);
  leave_out_discarded(meta, faults);
  check_modality(meta, faults);
  check_stats(meta, faults);
  return meta;
}

}  // namespace wam::data
