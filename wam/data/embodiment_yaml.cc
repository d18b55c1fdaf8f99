#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "wam/base/strings.h"
#include "wam/data/embodiment.h"
#include "wam/data/yaml_fields.h"

namespace wam::data {
namespace {

template <typename Enum, size_t N>
Enum parse_enum(const std::string& text, const std::array<Enum, N>& values, const char* what,
                const std::string& where) {
  std::vector<std::string> names;
  for (Enum value : values) {
    if (text == name(value)) return value;
    names.emplace_back(name(value));
  }
  throw ConfigError({.where = where,
                     .what = fmt::format("unknown {}", what),
                     .got = "'" + text + "'",
                     .remedy = name_hint(text, names)});
}

Tiling parse_tiling(const std::string& text, const std::string& where) {
  static constexpr std::array kAll = {Tiling::kSingle, Tiling::kSideBySide, Tiling::kWristOnTop,
                                      Tiling::kGrid};
  return parse_enum(text, kAll, "tiling", where);
}

NormMode parse_mode(const std::string& text, const std::string& where) {
  static constexpr std::array kAll = {NormMode::kQ99, NormMode::kMinMax, NormMode::kMeanStd,
                                      NormMode::kBinary, NormMode::kNone};
  return parse_enum(text, kAll, "normalization", where);
}

[[noreturn]] void refuse_range(std::string_view text, const std::string& where) {
  throw ConfigError({.where = where,
                     .what = "bad index range",
                     .got = "'" + std::string(text) + "'",
                     .expected = "key, key[3], key[0:7] or key[0:3,5:]",
                     .remedy = "Write the range like that."});
}

// A non-negative integer; `missing` where the text is empty.
int64_t parse_index(std::string_view text, std::optional<int64_t> missing, std::string_view whole,
                    const std::string& where) {
  text = trim(text);
  if (text.empty() && missing) return *missing;
  int64_t value = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = end == text.data() + text.size();
  if (code != std::errc() || !all || value < 0) refuse_range(whole, where);
  return value;
}

IndexRange parse_range(std::string_view text, std::string_view whole, const std::string& where) {
  const size_t colon = text.find(':');
  if (colon == text.npos) {
    const int64_t index = parse_index(text, std::nullopt, whole, where);
    return {index, index + 1};
  }
  return {parse_index(text.substr(0, colon), 0, whole, where),
          parse_index(text.substr(colon + 1), -1, whole, where)};
}

std::string_view without_prefix(std::string_view key, std::string_view modality) {
  const std::string prefix = std::string(modality) + ".";
  if (key.starts_with(prefix)) key.remove_prefix(prefix.size());
  return key;
}

std::string joined(std::string_view modality, const char* key) {
  return std::string(modality) + "." + key;
}

SliceSpec slice_from_map(const YAML::Node& node, std::string_view modality,
                         const std::string& where) {
  const YamlFields fields(node, "embodiment." + std::string(modality),
                          {"key", "column", "indices", "normalization", "per_horizon"});
  std::string key, indices, mode(name(NormMode::kQ99));
  SliceSpec slice;
  fields.read("key", key);
  if (key.empty()) {
    throw ConfigError({.where = where,
                       .what = "slice without a key",
                       .expected = "key: NAME",
                       .remedy = "Add the key of the slice."});
  }
  fields.read("column", slice.column);
  fields.read("indices", indices);
  fields.read("normalization", mode);
  slice.key = without_prefix(key, modality);
  if (!indices.empty()) {
    slice.ranges = parse_slice("x[" + indices + "]", modality, joined(modality, "indices")).ranges;
  }
  slice.mode =
      parse_mode(mode, fields.has("normalization") ? fields.where("normalization") : where);
  fields.read("per_horizon", slice.per_horizon);
  return slice;
}

void read_slices(const YamlFields& fields, const std::string& modality,
                 std::vector<SliceSpec>& slices) {
  if (!fields.has(modality)) return;
  slices.clear();
  for (const YAML::Node& item : fields.sequence(modality)) {
    const std::string where = fields.where(modality);
    slices.push_back(
        item.IsMap() ? slice_from_map(item, modality, where)
                     : parse_slice(YamlFields::convert<std::string>(item, where), modality, where));
  }
}

void read_keys(const YamlFields& fields, const std::string& field, std::string_view prefix,
               std::vector<std::string>& keys) {
  if (!fields.has(field)) return;
  fields.read(field, keys);
  for (std::string& key : keys) key = without_prefix(key, prefix);
}

void read_jitter(const YamlFields& fields, JitterOptions& jitter) {
  if (!fields.has("color_jitter")) return;
  const YAML::Node node = fields.node("color_jitter");
  if (node.IsScalar()) {
    const bool on = YamlFields::convert<bool>(node, fields.where("color_jitter"));
    jitter = on ? JitterOptions{} : JitterOptions{0, 0, 0, 0};
    return;
  }
  const YamlFields parts(node, "embodiment.color_jitter",
                         {"brightness", "contrast", "saturation", "hue"});
  parts.read("brightness", jitter.brightness);
  parts.read("contrast", jitter.contrast);
  parts.read("saturation", jitter.saturation);
  parts.read("hue", jitter.hue);
}

void read_picture(const YamlFields& fields, Embodiment& e) {
  read_keys(fields, "views", "video", e.views);
  fields.read("view_height", e.picture.view_height);
  fields.read("view_width", e.picture.view_width);
  fields.read("crop_scale", e.picture.crop_scale);
  read_jitter(fields, e.picture.jitter);
  std::string tiling(name(e.tiling));
  fields.read("tiling", tiling);
  e.tiling = parse_tiling(tiling, fields.where("tiling"));
}

// What is not said follows from what is: the stride from the horizon, the frames from the stride.
void read_window(const YamlFields& fields, Embodiment& e) {
  fields.read("action_horizon", e.action_horizon);
  fields.read("macro_stride", e.macro_stride);
  fields.read("video_in_chunk_offsets", e.video_in_chunk_offsets);
  fields.read("min_anchor_extent", e.min_anchor_extent);
  if (e.macro_stride == 0) e.macro_stride = e.action_horizon;
  if (!e.video_in_chunk_offsets.empty() || e.macro_stride <= 0) return;
  if (e.macro_stride % 8 != 0) {
    throw ConfigError({.where = "embodiment.video_in_chunk_offsets",
                       .what = "not given, and the macro stride is not a multiple of 8",
                       .got = std::to_string(e.macro_stride),
                       .expected = "8 rows within a stride",
                       .remedy = "Give eight row offsets, one per latent pair of a block."});
  }
  for (int64_t i = 0; i < 8; ++i) e.video_in_chunk_offsets.push_back(i * e.macro_stride / 8);
}

void read_robot(const YamlFields& fields, Embodiment& e) {
  fields.read("embodiment_tag", e.tag);
  fields.read("embodiment_id", e.id);
  read_slices(fields, "state", e.state);
  read_slices(fields, "action", e.action);
  read_keys(fields, "relative_action_keys", "action", e.relative_action_keys);
  fields.read("has_real_action", e.has_real_action);
  read_keys(fields, "language_keys", "annotation", e.language_keys);
  fields.read("prompt_template", e.prompt_template);
  fields.read("default_instruction", e.default_instruction);
  fields.read("language_dropout", e.language_dropout);
}

const std::vector<std::string>& valid_keys() {
  static const std::vector<std::string> keys = {"preset",
                                                "embodiment_tag",
                                                "embodiment_id",
                                                "views",
                                                "view_height",
                                                "view_width",
                                                "tiling",
                                                "crop_scale",
                                                "color_jitter",
                                                "prompt_template",
                                                "state",
                                                "action",
                                                "relative_action_keys",
                                                "has_real_action",
                                                "action_horizon",
                                                "macro_stride",
                                                "video_in_chunk_offsets",
                                                "min_anchor_extent",
                                                "language_keys",
                                                "default_instruction",
                                                "language_dropout"};
  return keys;
}

std::string range_text(const std::vector<IndexRange>& ranges) {
  std::string text;
  for (const IndexRange& range : ranges) {
    if (!text.empty()) text += ",";
    text += fmt::format("{}:{}", range.begin, range.end < 0 ? "" : std::to_string(range.end));
  }
  return text;
}

void emit_slices(YAML::Emitter& out, const char* modality, const std::vector<SliceSpec>& slices) {
  out << YAML::Key << modality << YAML::Value << YAML::BeginSeq;
  for (const SliceSpec& slice : slices) {
    out << YAML::Flow << YAML::BeginMap << YAML::Key << "key" << YAML::Value << slice.key;
    if (!slice.column.empty()) out << YAML::Key << "column" << YAML::Value << slice.column;
    if (!slice.ranges.empty()) {
      out << YAML::Key << "indices" << YAML::Value << YAML::DoubleQuoted
          << range_text(slice.ranges);
    }
    out << YAML::Key << "normalization" << YAML::Value << std::string(name(slice.mode));
    if (slice.per_horizon) out << YAML::Key << "per_horizon" << YAML::Value << true;
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

template <typename T>
void emit(YAML::Emitter& out, const char* key, const T& value) {
  out << YAML::Key << key << YAML::Value << value;
}

template <typename T>
void emit_list(YAML::Emitter& out, const char* key, const std::vector<T>& values) {
  out << YAML::Key << key << YAML::Value << YAML::Flow << values;
}

void emit_picture(YAML::Emitter& out, const Embodiment& e) {
  const JitterOptions& jitter = e.picture.jitter;
  emit_list(out, "views", e.views);
  emit(out, "view_height", e.picture.view_height);
  emit(out, "view_width", e.picture.view_width);
  emit(out, "tiling", std::string(name(e.tiling)));
  emit(out, "crop_scale", e.picture.crop_scale);
  out << YAML::Key << "color_jitter" << YAML::Value << YAML::Flow << YAML::BeginMap;
  emit(out, "brightness", jitter.brightness);
  emit(out, "contrast", jitter.contrast);
  emit(out, "saturation", jitter.saturation);
  emit(out, "hue", jitter.hue);
  out << YAML::EndMap;
}

}  // namespace

SliceSpec parse_slice(std::string_view text, std::string_view modality, const std::string& where) {
  SliceSpec slice;
  const size_t bracket = text.find('[');
  slice.key = without_prefix(trim(text.substr(0, bracket)), modality);
  if (slice.key.empty()) refuse_range(text, where);
  if (bracket == text.npos) return slice;
  std::string_view inside = trim(text.substr(bracket + 1));
  if (!inside.ends_with(']')) refuse_range(text, where);
  inside.remove_suffix(1);
  for (const std::string& piece : split(inside, ',')) {
    slice.ranges.push_back(parse_range(piece, text, where));
  }
  return slice;
}

Embodiment parse_embodiment(const YAML::Node& node) {
  if (node.IsScalar()) return embodiment_preset(node.Scalar());
  const YamlFields fields(node, "embodiment", valid_keys());
  Embodiment e;
  std::string preset;
  fields.read("preset", preset);
  if (!preset.empty()) e = embodiment_preset(preset);
  read_robot(fields, e);
  read_picture(fields, e);
  read_window(fields, e);
  validate(e);
  return e;
}

std::string to_yaml(const Embodiment& e) {
  YAML::Emitter out;
  out.SetDoublePrecision(17);
  out << YAML::BeginMap;
  emit(out, "embodiment_tag", e.tag);
  emit(out, "embodiment_id", e.id);
  emit_picture(out, e);
  emit(out, "prompt_template", e.prompt_template);
  emit_slices(out, "state", e.state);
  emit_slices(out, "action", e.action);
  emit_list(out, "relative_action_keys", e.relative_action_keys);
  emit(out, "has_real_action", e.has_real_action);
  emit(out, "action_horizon", e.action_horizon);
  emit(out, "macro_stride", e.macro_stride);
  emit_list(out, "video_in_chunk_offsets", e.video_in_chunk_offsets);
  emit(out, "min_anchor_extent", e.min_anchor_extent);
  emit_list(out, "language_keys", e.language_keys);
  emit(out, "default_instruction", e.default_instruction);
  emit(out, "language_dropout", e.language_dropout);
  out << YAML::EndMap;
  return out.c_str();
}

}  // namespace wam::data
