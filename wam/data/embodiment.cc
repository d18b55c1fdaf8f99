#include "wam/data/embodiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "wam/base/error.h"
#include "wam/base/strings.h"

namespace wam::data {
namespace {

constexpr int64_t kFramesPerBlock = 8;
constexpr int64_t kMaxSide = 8192;
constexpr int64_t kMaxRows = 1 << 20;

[[noreturn]] void refuse(const std::string& field, const std::string& what, const std::string& got,
                         const std::string& expected, const std::string& remedy = "") {
  throw ConfigError({.where = "embodiment." + field,
                     .what = what,
                     .got = got,
                     .expected = expected,
                     .remedy = remedy});
}

void check_range(const std::string& field, double value, double low, double high) {
  if (value >= low && value <= high) return;  // NaN fails here
  refuse(field, "value out of range", fmt::format("{}", value), fmt::format("{} to {}", low, high));
}

void check_unique(const std::string& field, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) refuse(field, "empty name", "''", "a key of the dataset");
    if (!seen.insert(name).second) refuse(field, "name given twice", name, "each key once");
  }
}

void check_views(const Embodiment& e) {
  static constexpr const char* kRule = "single 1, side_by_side 2, wrist_on_top 3, grid_2x2 2 or 3";
  check_unique("views", e.views);
  const size_t n = e.views.size();
  const bool fits = e.tiling == Tiling::kSingle       ? n == 1
                    : e.tiling == Tiling::kSideBySide ? n == 2
                    : e.tiling == Tiling::kWristOnTop ? n == 3
                                                      : n == 2 || n == 3;
  if (!fits) {
    refuse("views", fmt::format("number of views does not fit tiling {}", name(e.tiling)),
           std::to_string(n), kRule);
  }
}

void check_picture(const PictureOptions& p) {
  check_range("view_height", static_cast<double>(p.view_height), 1, kMaxSide);
  check_range("view_width", static_cast<double>(p.view_width), 1, kMaxSide);
  check_range("crop_scale", p.crop_scale, 0.05, 1);
  check_range("color_jitter.brightness", p.jitter.brightness, 0, 10);
  check_range("color_jitter.contrast", p.jitter.contrast, 0, 10);
  check_range("color_jitter.saturation", p.jitter.saturation, 0, 10);
  check_range("color_jitter.hue", p.jitter.hue, 0, 0.5);
}

void check_slices(const std::string& field, const std::vector<SliceSpec>& slices) {
  for (const SliceSpec& slice : slices) {
    if (slice.key.empty()) refuse(field, "slice without key", "''", "a key of the dataset");
    for (const IndexRange& range : slice.ranges) {
      const bool good = range.begin >= 0 && (range.end < 0 || range.end > range.begin);
      if (!good) {
        refuse(field, "index range of '" + slice.key + "' is empty or negative",
               fmt::format("[{}:{}]", range.begin, range.end), "0 <= begin < end");
      }
    }
  }
}

std::vector<std::string> keys_of(const std::vector<SliceSpec>& slices) {
  std::vector<std::string> keys;
  for (const SliceSpec& slice : slices) keys.push_back(slice.key);
  return keys;
}

void check_per_horizon(const Embodiment& e) {
  for (const SliceSpec& slice : e.state) {
    if (!slice.per_horizon) continue;
    refuse("state", "a state has no horizon", "per_horizon at '" + slice.key + "'",
           "per_horizon at actions only", "Remove it there.");
  }
}

void check_relative(const Embodiment& e) {
  check_unique("relative_action_keys", e.relative_action_keys);
  const std::vector<std::string> actions = keys_of(e.action), states = keys_of(e.state);
  for (const std::string& key : e.relative_action_keys) {
    const auto count = [&](const std::vector<std::string>& keys) {
      return std::count(keys.begin(), keys.end(), key);
    };
    if (count(actions) == 0) {
      refuse("relative_action_keys", "not an action key", key, "a key listed under action",
             name_hint(key, actions));
    }
    if (count(states) == 0) {
      refuse("relative_action_keys", "no state slice to be relative to", key,
             "the same key listed under state", name_hint(key, states));
    }
    // Each action slice is paired with the state slice of its name: one of each.
    if (count(actions) != 1 || count(states) != 1) {
      refuse("relative_action_keys", "key is cut into several slices", key,
             "one state and one action slice of that key");
    }
  }
}

void check_window(const Embodiment& e) {
  check_range("action_horizon", static_cast<double>(e.action_horizon), 1, kMaxRows);
  check_range("macro_stride", static_cast<double>(e.macro_stride), 1, kMaxRows);
  check_range("min_anchor_extent", static_cast<double>(e.min_anchor_extent), 0, kMaxRows);
  const std::vector<int64_t>& offsets = e.video_in_chunk_offsets;
  const bool ascending =
      std::adjacent_find(offsets.begin(), offsets.end(), std::greater_equal<>()) == offsets.end();
  const bool good = static_cast<int64_t>(offsets.size()) == kFramesPerBlock && ascending &&
                    offsets.front() >= 0 && offsets.back() <= kMaxRows;
  if (!good) {
    refuse("video_in_chunk_offsets", "wrong offsets", fmt::format("[{}]", fmt::join(offsets, ", ")),
           "8 ascending rows, the first not negative",
           "A block is two latent frames of four camera frames each.");
  }
}

void check_language(const Embodiment& e) {
  check_unique("language_keys", e.language_keys);
  check_range("language_dropout", e.language_dropout, 0, 1);
  if (e.language_dropout > 0 && e.default_instruction.empty()) {
    refuse("language_dropout", "nothing to put in place of a dropped instruction",
           fmt::format("{}", e.language_dropout), "default_instruction to be set");
  }
  if (e.prompt_template.find("{i}") == std::string::npos) {
    refuse("prompt_template", "the instruction has no place in it", "'" + e.prompt_template + "'",
           "at least one {i}");
  }
}

void check_actions(const Embodiment& e) {
  if (e.has_real_action && e.action.empty()) {
    refuse("action", "no action slices", "[]", "at least one",
           "Set has_real_action: false for a dataset of video alone.");
  }
  if (!e.has_real_action && !e.action.empty()) {
    refuse("has_real_action", "action slices are listed but said not to be real", "false",
           "action: [] or has_real_action: true");
  }
}

}  // namespace

int64_t Embodiment::tiled_height() const {
  const bool two_rows = tiling == Tiling::kWristOnTop || tiling == Tiling::kGrid;
  return picture.view_height * (two_rows ? 2 : 1);
}

int64_t Embodiment::tiled_width() const {
  return picture.view_width * (tiling == Tiling::kSingle ? 1 : 2);
}

std::string_view name(Tiling tiling) {
  switch (tiling) {
    case Tiling::kSingle:
      return "single";
    case Tiling::kSideBySide:
      return "side_by_side";
    case Tiling::kWristOnTop:
      return "wrist_on_top";
    case Tiling::kGrid:
      return "grid_2x2";
  }
  return "?";
}

std::string_view name(NormMode mode) {
  switch (mode) {
    case NormMode::kQ99:
      return "q99";
    case NormMode::kMinMax:
      return "min_max";
    case NormMode::kMeanStd:
      return "mean_std";
    case NormMode::kBinary:
      return "binary";
    case NormMode::kNone:
      return "none";
  }
  return "?";
}

void validate(const Embodiment& e) {
  if (e.tag.empty()) refuse("embodiment_tag", "missing", "''", "a name for the robot");
  check_range("embodiment_id", static_cast<double>(e.id), 0, 1 << 20);
  check_views(e);
  check_picture(e.picture);
  check_slices("state", e.state);
  check_slices("action", e.action);
  check_actions(e);
  check_per_horizon(e);
  check_relative(e);
  check_window(e);
  check_language(e);
}

}  // namespace wam::data
