#include "wam/data/modality.h"

#include <algorithm>
#include <string_view>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/json_fields.h"

namespace wam::data {
namespace {

const Feature* find(const std::vector<Feature>& features, const std::string& key) {
  const auto found = std::find_if(features.begin(), features.end(),
                                  [&](const Feature& feature) { return feature.key == key; });
  return found == features.end() ? nullptr : &*found;
}

std::string without_prefix(const std::string& text, std::string_view prefix) {
  return text.starts_with(prefix) && text.size() > prefix.size() ? text.substr(prefix.size())
                                                                 : text;
}

bool is_numeric(const Feature& feature) {
  return !feature.is_camera() && feature.dtype != "string";
}

bool is_state(const std::string& key) {
  return key == "observation.state" || key.starts_with("observation.state.") || key == "state" ||
         key.starts_with("state.");
}
bool is_action(const std::string& key) {
  return key == "action" || key == "actions" || key.starts_with("action.") ||
         key.starts_with("actions.");
}

// GEAR's names, and how many numbers each takes.
int64_t rotation_width(const std::string& type) {
  if (type == "axis_angle") return 3;
  if (type == "quaternion") return 4;
  if (type == "rotation_6d") return 6;
  if (type == "matrix") return 9;
  return type.starts_with("euler_angles_") ? 3 : 0;
}

void check_rotation(const ModalitySlice& slice, const std::string& where) {
  if (slice.rotation_type.empty()) return;
  const int64_t width = rotation_width(slice.rotation_type);
  if (width == slice.end - slice.begin) return;
  throw DataError(
      {.where = where,
       .what =
           width == 0 ? "unknown rotation_type" : "slice has another width than its rotation_type",
       .got = width == 0 ? quote(slice.rotation_type) : std::to_string(slice.end - slice.begin),
       .expected = width == 0 ? "axis_angle, quaternion, rotation_6d, matrix or "
                                "euler_angles_..."
                              : std::to_string(width) + " numbers",
       .remedy = "Correct meta/modality.json."});
}

ModalitySlice read_slice(const std::string& key, const Json& json, const std::string& where,
                         const std::string& default_column, const std::vector<Feature>& features) {
  ModalitySlice slice{.key = key};
  slice.original_key = json_string(json, "original_key", where, default_column);
  slice.begin = json_int(json, "start", where);
  slice.end = json_int(json, "end", where);
  slice.absolute = json_bool(json, "absolute", where, true);
  slice.rotation_type = json_string(json, "rotation_type", where, "");
  const Feature* feature = find(features, slice.original_key);
  const int64_t width = feature == nullptr ? INT64_MAX : feature->width();
  if (slice.begin >= 0 && slice.begin < slice.end && slice.end <= width) {
    check_rotation(slice, where);
    return slice;
  }
  throw DataError({.where = where,
                   .what = "slice does not fit its column " + quote(slice.original_key),
                   .got = std::to_string(slice.begin) + ":" + std::to_string(slice.end),
                   .expected = feature == nullptr ? "0 <= start < end"
                                                  : "0 <= start < end <= " + std::to_string(width),
                   .remedy = "Correct meta/modality.json."});
}

std::vector<ModalitySlice> read_slices(const Json& root, const char* group, const std::string& file,
                                       const std::string& default_column,
                                       const std::vector<Feature>& features) {
  std::vector<ModalitySlice> slices;
  const auto found = root.find(group);
  if (found == root.end() || found->is_null()) return slices;
  for (const auto& [key, json] : found->items()) {
    const std::string where = file + ": " + group + "." + quote(key);
    if (!json.is_object()) {
      throw DataError({.where = where,
                       .what = "entry is not an object",
                       .got = json.dump(),
                       .remedy = "Write it as an object of keys, or leave the file out."});
    }
    slices.push_back(read_slice(key, json, where, default_column, features));
  }
  return slices;
}

// Short name -> original key.
template <typename DefaultKey>
std::map<std::string, std::string> read_names(const Json& root, const char* group,
                                              const std::string& file, DefaultKey&& default_key) {
  std::map<std::string, std::string> names;
  const auto found = root.find(group);
  if (found == root.end() || found->is_null()) return names;
  for (const auto& [key, json] : found->items()) {
    const std::string where = file + ": " + group + "." + quote(key);
    if (!json.is_object()) {
      throw DataError({.where = where,
                       .what = "entry is not an object",
                       .got = json.dump(),
                       .remedy = "Write it as an object of keys, or leave the file out."});
    }
    names[key] = json_string(json, "original_key", where, default_key(key));
  }
  return names;
}

std::vector<ModalitySlice> whole_columns(const std::vector<Feature>& features,
                                         bool (*belongs)(const std::string&)) {
  std::vector<ModalitySlice> slices;
  for (const Feature& feature : features) {
    if (!is_numeric(feature) || !belongs(feature.key)) continue;
    slices.push_back({.key = without_prefix(feature.key, "observation."),
                      .original_key = feature.key,
                      .begin = 0,
                      .end = feature.width()});
  }
  return slices;
}

}  // namespace

Modality default_modality(const std::vector<Feature>& features) {
  Modality modality;
  modality.state = whole_columns(features, is_state);
  modality.action = whole_columns(features, is_action);
  for (const Feature& feature : features) {
    if (feature.is_camera()) {
      modality.video.emplace(without_prefix(feature.key, "observation.images."), feature.key);
    }
    if (feature.key.starts_with("annotation.")) {
      modality.annotation.emplace(without_prefix(feature.key, "annotation."), feature.key);
    }
  }
  return modality;
}

Modality read_modality(const std::filesystem::path& root, const std::vector<Feature>& features) {
  const std::filesystem::path path = root / "meta" / "modality.json";
  if (!std::filesystem::exists(path)) return default_modality(features);
  const std::string where = path.string();
  const Json json = read_json_object(path);
  Modality modality;
  modality.state = read_slices(json, "state", where, "observation.state", features);
  modality.action = read_slices(json, "action", where, "action", features);
  modality.video = read_names(json, "video", where, [&](const std::string& key) {
    const std::string full = "observation.images." + key;
    return find(features, full) != nullptr ? full : key;
  });
  modality.annotation = read_names(json, "annotation", where,
                                   [](const std::string& key) { return "annotation." + key; });
  return modality;
}

}  // namespace wam::data
