// The section `dataset`: one dataset, or a mixture of them.
#include <algorithm>
#include <filesystem>
#include <set>

#include "wam/data/index_ranges.h"
#include "wam/data/screen.h"
#include "wam/train/config_section.h"

namespace wam::train {
namespace {

void selection_fields(Section& s, SourceSection& d) {
  s.field("episodes", d.episodes);
  s.field("exclude_episodes", d.exclude_episodes);
  s.field("tasks", d.tasks);
  s.field("exclude_tasks", d.exclude_tasks);
  s.field("drop_frames", d.drop_frames);
  s.field("faults", d.faults);
  s.field("validation_episodes", d.validation_episodes);
  s.field("validation_last", d.validation_last);
  s.field("validation_fraction", d.validation_fraction);
}
const std::vector<std::string> kSelectionKeys = {
    "episodes",    "exclude_episodes",    "tasks",           "exclude_tasks",
    "drop_frames", "faults", "validation_episodes", "validation_last", "validation_fraction"};

std::vector<std::string> with_selection(std::vector<std::string> keys) {
  keys.insert(keys.end(), kSelectionKeys.begin(), kSelectionKeys.end());
  return keys;
}

const std::vector<std::string>& entry_keys() {
  static const std::vector<std::string> keys =
      with_selection({"name", "path", "weight", "embodiment", "statistics"});
  return keys;
}

std::string indented(const std::string& block, const std::string& indent) {
  std::string text;
  for (const std::string& row : split(block, '\n')) {
    if (!row.empty()) text += "\n" + indent + row;
  }
  return text;
}

void embodiment_field(Section& s, data::Embodiment& e, const std::string& indent) {
  if (!s.reading()) {
    s.line("embodiment", indented(data::to_yaml(e), indent));
  } else if (s.fields().has("embodiment")) {
    e = data::parse_embodiment(s.fields().node("embodiment"));
  }
}

void entry_fields(Section& s, SourceSection& d) {
  s.field("name", d.name);
  s.field("path", d.path);
  s.field("weight", d.weight);
  s.field("statistics", d.statistics);
  selection_fields(s, d);
  embodiment_field(s, d.embodiment, "        ");
}

// A list of maps; an entry without a robot has the section's.
void mixture_field(Section& s, DatasetSection& d) {
  if (s.reading()) {
    if (!s.fields().has("mixture")) return;
    d.mixture.clear();
    for (const YAML::Node& node : s.fields().sequence("mixture")) {
      const std::string where = fmt::format("dataset.mixture[{}]", d.mixture.size());
      Section entry(node, where, entry_keys());
      SourceSection source;
      source.embodiment = d.embodiment;
      entry_fields(entry, source);
      d.mixture.push_back(std::move(source));
    }
    return;
  }
  if (d.mixture.empty()) return s.line("mixture", "[]");
  std::string text;
  for (SourceSection& source : d.mixture) {
    Section entry("      ");
    entry_fields(entry, source);
    std::string block = entry.text();
    block.replace(0, 6, "    - ");
    if (block.ends_with('\n')) block.pop_back();
    text += "\n" + block;
  }
  s.line("mixture", text);
}

void check_ranges(const std::string& where, const std::vector<std::string>& texts) {
  data::IndexRanges::parse(texts, where);
}

void check_source(const SourceSection& d, const std::string& where) {
  check_ranges(where + ".episodes", d.episodes);
  check_ranges(where + ".exclude_episodes", d.exclude_episodes);
  check_ranges(where + ".validation_episodes", d.validation_episodes);
  data::parse_fault_policy(d.faults, where + ".faults");
  if (d.validation_last < 0) {
    fail(where + ".validation_last", "value is too small", std::to_string(d.validation_last),
         "at least 0", "Choose a larger one.");
  }
  if (!(d.validation_fraction >= 0 && d.validation_fraction < 1)) {
    fail(where + ".validation_fraction", "value is out of range",
         fmt::format("{}", d.validation_fraction), "0 <= fraction < 1");
  }
  if (!(d.weight > 0) || d.weight > 1e15) {
    fail(where + ".weight", "value is out of range", fmt::format("{}", d.weight),
         "above 0, at most 1e15", "Leave out a dataset that is not wanted.");
  }
}

void check_names(const DatasetSection& d) {
  std::set<std::string> names;
  for (size_t i = 0; i < d.mixture.size(); ++i) {
    const std::string where = fmt::format("dataset.mixture[{}]", i), name = d.mixture[i].shown_name();
    if (d.mixture[i].path.empty()) {
      fail(where + ".path", "no dataset is named", "", "folder of a LeRobot dataset",
           "Add its path, or remove the entry.");
    }
    if (d.mixture[i].embodiment.tag.empty()) {
      fail(where + ".embodiment", "no robot is named", "", "a built-in robot or a block of keys",
           "Name one here, or dataset.embodiment for all. Built in: " +
               join(data::embodiment_preset_names(), ", ") + ".");
    }
    const bool is_plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return static_cast<unsigned char>(c) > ' ' && c != '/' && c != 0x7f;
    });
    if (!is_plain) {
      fail(where + ".name", "cannot be the name of a curve", "'" + name + "'",
           "letters and signs without '/' and blanks", "Give the entry another name.");
    }
    if (names.insert(name).second) continue;
    fail(where + ".name", "two datasets of one name", "'" + name + "'", "a name for each",
         "Give one of them another name.");
  }
}

}  // namespace

void dataset_fields(Section& s, DatasetSection& d) {
  s.field("path", d.path);
  s.field("statistics", d.statistics);
  s.field("sampling_mode", d.sampling_mode);
  if (s.reading()) choose("dataset.sampling_mode", d.sampling_mode, {"multi_anchor", "fixed_window"});
  selection_fields(s, d);
  s.field("mixture_weights", d.mixture_weights);
  if (s.reading()) choose("dataset.mixture_weights", d.mixture_weights, {"samples", "rows"});
  s.field("num_workers", d.num_workers);
  s.field("prefetch_batches", d.prefetch_batches);
  embodiment_field(s, d.embodiment, "    ");
  mixture_field(s, d);
  // What all of them share is taken from the first.
  if (s.reading() && d.embodiment.tag.empty() && !d.mixture.empty()) {
    d.embodiment = d.mixture.front().embodiment;
  }
}

const std::vector<std::string>& dataset_keys() {
  static const std::vector<std::string> keys =
      with_selection({"path", "statistics", "sampling_mode", "mixture_weights", "mixture",
                      "embodiment", "num_workers", "prefetch_batches"});
  return keys;
}

void check_dataset(const DatasetSection& d) {
  check_source(d, "dataset");
  if (d.mixture.empty()) return;
  const bool has_own = !d.path.empty() || !d.statistics.empty() ||
                       !d.episodes.empty() || !d.exclude_episodes.empty() || !d.tasks.empty() ||
                       !d.exclude_tasks.empty() || !d.drop_frames.empty() ||
                       !d.validation_episodes.empty() || d.validation_last != 0 ||
                       d.validation_fraction != 0;
  if (has_own) {
    fail("dataset.mixture", "given beside keys of a single dataset", d.path,
         "path, statistics and the choice of episodes inside the mixture's entries",
         "Move them there.");
  }
  for (size_t i = 0; i < d.mixture.size(); ++i) {
    check_source(d.mixture[i], fmt::format("dataset.mixture[{}]", i));
  }
  check_names(d);
}

std::string SourceSection::shown_name() const {
  if (!name.empty()) return name;
  const std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

std::vector<SourceSection> DatasetSection::sources() const {
  if (!mixture.empty()) return mixture;
  return {static_cast<const SourceSection&>(*this)};
}

}  // namespace wam::train
