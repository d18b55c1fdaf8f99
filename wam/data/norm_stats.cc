#include "wam/data/norm_stats.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/strings.h"
#include "wam/data/normalize.h"
#include "wam/data/slice_lookup.h"

namespace wam::data {
namespace {

using Json = nlohmann::json;
using ColumnStats = std::map<std::string, StatTable>;

[[noreturn]] void refuse(const std::string& where, const std::string& what,
                         const std::string& expected) {
  throw DataError({.where = where,
                   .what = what,
                   .expected = expected,
                   .remedy = "Write it anew with `wam stats DATASET`."});
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  if (!object.is_object() || !object.contains(key)) {
    refuse(where, std::string("no '") + key + "' in it", "the public metadata.json layout");
  }
  return object.at(key);
}

// Numbers of a list or a list of lists of equal lengths, row by row; `width` gets the last length.
std::vector<double> flat_numbers(const Json& value, int64_t& width, const std::string& where) {
  std::vector<double> numbers;
  const auto append_row = [&](const Json& row) {
    for (const Json& number : row) {
      if (!number.is_number()) refuse(where, "a statistic is not a number", "finite numbers");
      numbers.push_back(number.get<double>());
      if (!std::isfinite(numbers.back())) refuse(where, "a statistic overflows", "finite numbers");
    }
  };
  if (!value.is_array() || value.empty()) refuse(where, "a statistic is not a list", "a list");
  if (!value[0].is_array()) {
    append_row(value);
    width = std::ssize(value);
    return numbers;
  }
  width = std::ssize(value[0]);
  for (const Json& row : value) {
    const bool same = row.is_array() && std::ssize(row) == width;
    if (!same) refuse(where, "rows of a statistic differ in length", "one length");
    append_row(row);
  }
  return numbers;
}

KeyStats read_key(const Json& entry, const std::string& where) {
  KeyStats stats;
  if (!entry.is_object()) refuse(where, "statistics are not an object", "{\"q01\": [...], ...}");
  for (const auto& [name, value] : entry.items()) {
    if (!value.is_array()) continue;  // counts and notes
    int64_t width = 0;
    stats.values[name] = flat_numbers(value, width, where + "." + name);
    if (stats.width != 0 && width != stats.width) {
      refuse(where, "statistics differ in length", "one length for all of a key");
    }
    stats.width = width;
  }
  return stats;
}

std::map<std::string, KeyStats> read_modality(const Json& statistics, const char* modality,
                                              const std::string& where) {
  std::map<std::string, KeyStats> result;
  if (!statistics.contains(modality)) return result;
  for (const auto& [key, entry] : statistics.at(modality).items()) {
    result[key] = read_key(entry, where + "." + modality + "." + key);
  }
  return result;
}

// The part of a column's statistics that belongs to a key.
KeyStats cut(const StatTable& column, const FoundSlice& slice) {
  KeyStats stats{slice.width(), {}};
  for (const auto& [name, values] : column) {
    if (std::ssize(values) < slice.end) continue;  // counts, or another layout: reported as missing
    stats.values[name] = {values.begin() + slice.begin, values.begin() + slice.end};
  }
  return stats;
}

bool lacks(const KeyStats& stats, NormMode mode) {
  const std::vector<std::string> needed = needed_statistics(mode);
  return std::any_of(needed.begin(), needed.end(),
                     [&](const std::string& name) { return !stats.values.contains(name); });
}

struct Collector {
  const Dataset& dataset;
  std::vector<std::string> missing;

  KeyStats column_stats(const FoundSlice& found, const SliceSpec& slice) {
    const auto column = dataset.stats().find(found.column);
    KeyStats stats{found.width(), {}};
    if (column != dataset.stats().end()) stats = cut(column->second, found);
    if (lacks(stats, slice.mode)) note(found.column, slice);
    return stats;
  }
  KeyStats relative_stats(const FoundSlice& found, const SliceSpec& slice) {
    const auto entry = dataset.relative_stats().find(slice.key);
    KeyStats stats{found.width(), {}};
    if (entry != dataset.relative_stats().end()) stats.values = entry->second;
    if (lacks(stats, slice.mode)) note("relative " + slice.key, slice);
    return stats;
  }
  void note(const std::string& what, const SliceSpec& slice) {
    missing.push_back(what + ": " + join(needed_statistics(slice.mode), ", "));
  }
};

const ModalitySlice* find_entry(const std::vector<ModalitySlice>* slices, const std::string& key) {
  if (slices == nullptr) return nullptr;
  const auto found = std::find_if(slices->begin(), slices->end(),
                                  [&](const ModalitySlice& slice) { return slice.key == key; });
  return found == slices->end() ? nullptr : &*found;
}

Json modality_shapes(const std::map<std::string, KeyStats>& keys,
                     const std::vector<ModalitySlice>* slices,
                     const std::vector<std::string>& relative) {
  Json shapes = Json::object();
  for (const auto& [key, stats] : keys) {
    const bool is_relative = std::find(relative.begin(), relative.end(), key) != relative.end();
    const ModalitySlice* entry = find_entry(slices, key);
    const bool has_rotation = entry != nullptr && !entry->rotation_type.empty();
    shapes[key] = {{"absolute", !is_relative && (entry == nullptr || entry->absolute)},
                   {"rotation_type", has_rotation ? Json(entry->rotation_type) : Json(nullptr)},
                   {"shape", {stats.width}},
                   {"continuous", true}};
  }
  return shapes;
}

Json statistics_json(const std::map<std::string, KeyStats>& keys) {
  Json result = Json::object();
  for (const auto& [key, stats] : keys) {
    Json entry = Json::object();
    for (const auto& [name, values] : stats.values) {
      if (std::ssize(values) == stats.width) {
        entry[name] = values;
        continue;
      }
      Json rows = Json::array();
      for (auto it = values.begin(); it != values.end(); it += stats.width) {
        rows.push_back(std::vector<double>(it, it + stats.width));
      }
      entry[name] = rows;
    }
    result[key] = entry;
  }
  return result;
}

Json read_metadata(const std::filesystem::path& path) {
  Json root = Json::parse(read_text_file(path, size_t{64} << 20), nullptr, false);
  if (root.is_discarded() || !root.is_object()) {
    refuse(path.string(), "not a JSON object", "metadata.json");
  }
  return root;
}

}  // namespace

std::vector<std::string> metadata_tags(const std::filesystem::path& path) {
  std::vector<std::string> tags;
  const Json root = read_metadata(path);
  for (const auto& [name, value] : root.items()) tags.push_back(name);
  return tags;
}

NormStats load_metadata_stats(const std::filesystem::path& path, const std::string& tag) {
  const std::string where = path.string();
  const Json root = read_metadata(path);
  if (!root.contains(tag)) {
    const std::vector<std::string> tags = metadata_tags(path);
    throw DataError({.where = where,
                     .what = "no statistics for the embodiment tag",
                     .got = "'" + tag + "'",
                     .expected = "one of: " + join(tags, ", "),
                     .remedy = "Set embodiment_tag to it, or run `wam stats` with --embodiment."});
  }
  const std::string inside = where + ": " + tag;
  const Json& statistics = member(root.at(tag), "statistics", inside);
  if (!statistics.is_object()) refuse(inside, "statistics are not an object", "state and action");
  return {read_modality(statistics, "state", inside), read_modality(statistics, "action", inside),
          where};
}

NormStats dataset_stats(const Dataset& dataset, const Embodiment& embodiment) {
  Collector collector{dataset, {}};
  NormStats stats;
  stats.source = (dataset.root() / "meta").string();
  for (const SliceSpec& slice : embodiment.state) {
    stats.state[slice.key] = collector.column_stats(find_slice(dataset, "state", slice), slice);
  }
  const auto& relative = embodiment.relative_action_keys;
  for (const SliceSpec& slice : embodiment.action) {
    const bool is_relative =
        std::find(relative.begin(), relative.end(), slice.key) != relative.end();
    const FoundSlice found = find_slice(dataset, "action", slice);
    stats.action[slice.key] =
        is_relative ? collector.relative_stats(found, slice) : collector.column_stats(found, slice);
  }
  if (!collector.missing.empty()) {
    throw DataError({.where = stats.source,
                     .what = "statistics missing for " + join(collector.missing, "; "),
                     .remedy = "Compute them with `wam stats " + dataset.root().string() +
                               "` and name its metadata.json in the config."});
  }
  return stats;
}

NormStats find_norm_stats(const std::filesystem::path& metadata, const Dataset& dataset,
                          const Embodiment& embodiment) {
  return metadata.empty() ? dataset_stats(dataset, embodiment)
                          : load_metadata_stats(metadata, embodiment.tag);
}

std::string metadata_json(const std::vector<MetadataBlock>& blocks) {
  Json root = Json::object();
  for (const MetadataBlock& block : blocks) {
    Json cameras = Json::object();
    for (const auto& [view, info] : block.video) {
      cameras[view] = {
          {"resolution", {info.width, info.height}}, {"channels", 3}, {"fps", info.fps}};
    }
    const auto* states = block.modality == nullptr ? nullptr : &block.modality->state;
    const auto* actions = block.modality == nullptr ? nullptr : &block.modality->action;
    root[block.tag] = {
        {"statistics",
         {{"state", statistics_json(block.stats->state)},
          {"action", statistics_json(block.stats->action)}}},
        {"modalities",
         {{"video", cameras},
          {"state", modality_shapes(block.stats->state, states, {})},
          {"action", modality_shapes(block.stats->action, actions,
                                     block.embodiment->relative_action_keys)}}},
        {"embodiment_tag", block.embodiment->tag}};
  }
  return root.dump(2) + "\n";
}

std::string metadata_json(const Embodiment& embodiment, const NormStats& stats,
                          const std::map<std::string, VideoInfo>& video) {
  return metadata_json({{embodiment.tag, &embodiment, &stats, video}});
}

}  // namespace wam::data
