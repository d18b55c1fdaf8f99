#include "wam/data/slice_lookup.h"

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/strings.h"

namespace wam::data {
namespace {

std::string info_path(const Dataset& dataset) {
  return (dataset.root() / "meta" / "info.json").string();
}

bool is_picture(const Feature& feature) {
  return feature.dtype == "video" || feature.dtype == "image";
}

bool is_numeric(const Feature& feature) {
  return !is_picture(feature) && feature.dtype != "string";
}

// Dims of a column of shape [n], [1] or []; products for higher shapes.
int64_t column_width(const Feature& feature) {
  int64_t width = 1;
  for (int64_t side : feature.shape) width *= side;
  return width;
}

const ModalitySlice* find_entry(const Dataset& dataset, const std::string& modality,
                                const std::string& key) {
  const auto& entries = modality == "state" ? dataset.modality().state : dataset.modality().action;
  for (const ModalitySlice& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

std::vector<std::string> known_keys(const Dataset& dataset, const std::string& modality) {
  std::vector<std::string> names;
  const auto& entries = modality == "state" ? dataset.modality().state : dataset.modality().action;
  for (const ModalitySlice& entry : entries) names.push_back(entry.key);
  for (const Feature& feature : dataset.features()) {
    if (is_numeric(feature)) names.push_back(feature.key);
  }
  return names;
}

[[noreturn]] void refuse_key(const Dataset& dataset, const std::string& what,
                             const std::string& key, const std::vector<std::string>& known) {
  throw DataError({.where = dataset.root().string(),
                   .what = "dataset has no " + what,
                   .got = "'" + key + "'",
                   .expected = "a key of meta/modality.json or meta/info.json",
                   .remedy = name_hint(key, known)});
}

FoundSlice whole_column(const Dataset& dataset, const std::string& modality,
                        const SliceSpec& slice) {
  const std::string& column = slice.column.empty() ? slice.key : slice.column;
  const Feature* feature = dataset.find_feature(column);
  if (feature == nullptr || !is_numeric(*feature)) {
    refuse_key(dataset, modality + " slice or column", column, known_keys(dataset, modality));
  }
  return {slice.key, column, 0, column_width(*feature), {}};
}

FoundSlice entry_slice(const Dataset& dataset, const ModalitySlice& entry) {
  const Feature* feature = dataset.find_feature(entry.original_key);
  if (feature == nullptr || !is_numeric(*feature)) {
    throw DataError({.where = (dataset.root() / "meta" / "modality.json").string(),
                     .what = "entry '" + entry.key + "' names a column that does not exist",
                     .got = "'" + entry.original_key + "'",
                     .expected = "a numeric feature of meta/info.json",
                     .remedy = "Correct its original_key."});
  }
  const int64_t width = column_width(*feature);
  if (entry.begin < 0 || entry.end <= entry.begin || entry.end > width) {
    throw DataError({.where = (dataset.root() / "meta" / "modality.json").string(),
                     .what = "entry '" + entry.key + "' leaves its column",
                     .got = std::to_string(entry.begin) + ":" + std::to_string(entry.end),
                     .expected = "a range within 0:" + std::to_string(width),
                     .remedy = "Correct its start and end."});
  }
  return {entry.key, entry.original_key, entry.begin, entry.end, {}};
}

}  // namespace

std::vector<int64_t> selected_dims(const std::vector<IndexRange>& ranges, int64_t width,
                                   const std::string& where) {
  std::vector<IndexRange> wanted = ranges;
  if (wanted.empty()) wanted.push_back({0, width});
  std::vector<int64_t> dims;
  for (const IndexRange& range : wanted) {
    const int64_t end = range.end < 0 ? width : range.end;
    if (range.begin < 0 || range.begin >= end || end > width) {
      throw ConfigError({.where = where,
                         .what = "index range leaves the slice",
                         .got = std::to_string(range.begin) + ":" + std::to_string(end),
                         .expected = "a range within 0:" + std::to_string(width),
                         .remedy = "Name a range inside it."});
    }
    for (int64_t d = range.begin; d < end; ++d) dims.push_back(d);
  }
  return dims;
}

FoundSlice find_slice(const Dataset& dataset, const std::string& modality, const SliceSpec& slice) {
  const ModalitySlice* entry =
      slice.column.empty() ? find_entry(dataset, modality, slice.key) : nullptr;
  FoundSlice found =
      entry != nullptr ? entry_slice(dataset, *entry) : whole_column(dataset, modality, slice);
  found.dims = selected_dims(
      slice.ranges, found.width(),
      "embodiment." + modality + " slice '" + slice.key + "' of " + info_path(dataset));
  return found;
}

std::string find_camera(const Dataset& dataset, const std::string& view) {
  std::vector<std::string> candidates;
  const auto entry = dataset.modality().video.find(view);
  if (entry != dataset.modality().video.end()) candidates.push_back(entry->second);
  candidates.insert(candidates.end(), {"observation.images." + view, view});
  for (const std::string& key : candidates) {
    const Feature* feature = dataset.find_feature(key);
    if (feature != nullptr && is_picture(*feature)) return key;
  }
  std::vector<std::string> pictures, endings;
  for (const Feature& feature : dataset.features()) {
    if (!is_picture(feature)) continue;
    pictures.push_back(feature.key);
    if (feature.key.ends_with("." + view)) endings.push_back(feature.key);
  }
  if (endings.size() == 1) return endings[0];
  refuse_key(dataset, "camera for view", view, pictures);
}

std::string find_language_column(const Dataset& dataset, const std::string& key) {
  std::vector<std::string> candidates, known;
  const auto entry = dataset.modality().annotation.find(key);
  if (entry != dataset.modality().annotation.end()) candidates.push_back(entry->second);
  candidates.insert(candidates.end(), {"annotation." + key, key});
  for (const std::string& column : candidates) {
    const Feature* feature = dataset.find_feature(column);
    if (feature != nullptr && !is_picture(*feature)) return column;
  }
  for (const auto& [name, column] : dataset.modality().annotation) known.push_back(name);
  refuse_key(dataset, "language column for key", key, known);
}

}  // namespace wam::data
