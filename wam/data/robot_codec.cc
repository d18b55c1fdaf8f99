#include "wam/data/robot_codec.h"

#include <algorithm>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/data/slice_lookup.h"

namespace wam::data {
namespace {

using KeyMap = std::map<std::string, KeyStats>;

void check_present(const std::vector<SliceSpec>& slices, const KeyMap& stats,
                   const std::string& modality, std::vector<std::string>& missing) {
  for (const SliceSpec& slice : slices) {
    const auto entry = stats.find(slice.key);
    if (entry == stats.end()) {
      missing.push_back(modality + "." + slice.key);
      continue;
    }
    for (const std::string& name : needed_statistics(slice.mode)) {
      if (!entry->second.values.contains(name)) {
        missing.push_back(modality + "." + slice.key + "." + name);
      }
    }
  }
}

void check_all_present(const Embodiment& embodiment, const NormStats& stats) {
  std::vector<std::string> missing;
  check_present(embodiment.state, stats.state, "state", missing);
  check_present(embodiment.action, stats.action, "action", missing);
  if (missing.empty()) return;
  throw DataError({.where = stats.source,
                   .what = "statistics missing: " + join(missing, ", "),
                   .remedy = "Compute them with `wam stats DATASET`, or name other slices."});
}

// Norms of one dim: a single one, or one for each of `horizon` rows.
std::vector<DimNorm> dim_norms(const SliceSpec& slice, const KeyStats& stats, int64_t dim,
                               int64_t horizon, const std::string& where) {
  const std::vector<std::string> needed = needed_statistics(slice.mode);
  if (needed.empty()) return {{slice.mode, 0, 0}};
  const std::vector<double>& a = stats.values.at(needed[0]);
  const std::vector<double>& b = stats.values.at(needed[1]);
  const int64_t length = std::ssize(a), width = stats.width;
  const bool per_row = length == horizon * width && horizon > 1;
  if (std::ssize(b) != length || (length != width && !per_row)) {
    throw DataError({.where = where,
                     .what = "statistics of '" + slice.key + "' have the wrong length",
                     .got = std::to_string(length) + " and " + std::to_string(b.size()),
                     .expected = std::to_string(width) + " numbers, or " + std::to_string(horizon) +
                                 " rows of them",
                     .remedy = "Compute them anew with wam stats."});
  }
  if (slice.per_horizon && !per_row) {
    throw DataError({.where = where,
                     .what = "statistics of '" + slice.key + "' are not per row of a block",
                     .got = "one row",
                     .expected = std::to_string(horizon) + " rows, as per_horizon asks for",
                     .remedy = "Compute them with `wam stats --embodiment`, or drop per_horizon."});
  }
  std::vector<DimNorm> norms;
  for (int64_t at = dim; at < length; at += width) {
    const auto i = static_cast<size_t>(at);
    norms.push_back({slice.mode, static_cast<float>(a[i]), static_cast<float>(b[i])});
  }
  return norms;
}

std::string dim_name(const SliceSpec& slice, int64_t dim) {
  return slice.key + "[" + std::to_string(dim) + "]";
}

void check_fits(int64_t width, int64_t dim, const char* modality, const char* key) {
  if (width <= dim) return;
  throw ConfigError({.where = std::string("embodiment.") + modality,
                     .what = std::string("more ") + modality + " dims than the model takes",
                     .got = std::to_string(width),
                     .expected = "at most " + std::string(key) + " = " + std::to_string(dim),
                     .remedy = "Name fewer slices, or parts of them: key[0:7]."});
}

// First place of each state key among the used state dims, and how many it has.
struct KeyPlace {
  int64_t first = -1, count = 0;
};

}  // namespace

RobotCodec::RobotCodec(const Embodiment& embodiment, const NormStats& stats, int64_t state_dim,
                       int64_t action_dim)
    : state_dim_(state_dim), action_dim_(action_dim), action_horizon_(embodiment.action_horizon) {
  check_all_present(embodiment, stats);
  std::map<std::string, KeyPlace> places;
  for (const SliceSpec& slice : embodiment.state) {
    const KeyStats& key = stats.state.at(slice.key);
    const std::vector<int64_t> dims = selected_dims(slice.ranges, key.width, "embodiment.state");
    places[slice.key] = {state_width(), std::ssize(dims)};
    for (int64_t dim : dims) {
      state_names_.push_back(dim_name(slice, dim));
      state_norms_.push_back(dim_norms(slice, key, dim, 1, stats.source)[0]);
    }
  }
  const auto& relative = embodiment.relative_action_keys;
  for (const SliceSpec& slice : embodiment.action) {
    const KeyStats& key = stats.action.at(slice.key);
    const std::vector<int64_t> dims = selected_dims(slice.ranges, key.width, "embodiment.action");
    const bool is_relative =
        std::find(relative.begin(), relative.end(), slice.key) != relative.end();
    const KeyPlace place = is_relative ? places[slice.key] : KeyPlace{};
    if (is_relative && place.count != std::ssize(dims)) {
      throw ConfigError({.where = "embodiment.relative_action_keys",
                         .what = "state and action of '" + slice.key + "' differ in width",
                         .got = std::to_string(place.count) + " and " + std::to_string(dims.size()),
                         .expected = "the same dims of both",
                         .remedy = "Take the key off the list, or name ranges of one width."});
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      action_names_.push_back(dim_name(slice, dims[i]));
      action_norms_.push_back(dim_norms(slice, key, dims[i], action_horizon_, stats.source));
      relative_.push_back(is_relative ? place.first + static_cast<int64_t>(i) : -1);
    }
  }
  check_fits(state_width(), state_dim, "state", "state_dim");
  check_fits(action_width(), action_dim, "action", "action_dim");
}

const DimNorm& RobotCodec::action_norm(int64_t row, int64_t dim) const {
  const std::vector<DimNorm>& norms = action_norms_[static_cast<size_t>(dim)];
  return norms[norms.size() == 1 ? 0 : static_cast<size_t>(row)];
}

void RobotCodec::encode_state(std::span<const double> raw, std::span<float> out) const {
  WAM_CHECK(std::ssize(raw) == state_width() && std::ssize(out) == state_dim_);
  std::fill(out.begin(), out.end(), 0.0f);
  for (size_t d = 0; d < raw.size(); ++d) {
    out[d] = normalize(state_norms_[d], static_cast<float>(raw[d]));
  }
}

void RobotCodec::encode_actions(std::span<const double> raw, std::span<const double> state,
                                std::span<float> out) const {
  const int64_t width = action_width();
  WAM_CHECK(std::ssize(raw) == action_horizon_ * width && std::ssize(state) == state_width() &&
            std::ssize(out) == action_horizon_ * action_dim_);
  std::fill(out.begin(), out.end(), 0.0f);
  if (width == 0) return;
  std::vector<float> rows(raw.begin(), raw.end());
  const std::vector<float> reference(state.begin(), state.end());
  make_relative(relative_, reference, rows);
  for (int64_t a = 0; a < action_horizon_; ++a) {
    for (int64_t d = 0; d < width; ++d) {
      out[static_cast<size_t>(a * action_dim_ + d)] =
          normalize(action_norm(a, d), rows[static_cast<size_t>(a * width + d)]);
    }
  }
}

void RobotCodec::decode_actions(std::span<const float> encoded, std::span<const double> state,
                                std::span<double> raw) const {
  const int64_t width = action_width();
  WAM_CHECK(std::ssize(raw) == action_horizon_ * width && std::ssize(state) == state_width() &&
            std::ssize(encoded) == action_horizon_ * action_dim_);
  if (width == 0) return;
  for (int64_t a = 0; a < action_horizon_; ++a) {
    for (int64_t d = 0; d < width; ++d) {
      raw[static_cast<size_t>(a * width + d)] =
          denormalize(action_norm(a, d), encoded[static_cast<size_t>(a * action_dim_ + d)]);
    }
  }
  make_absolute(relative_, state, raw);
}

}  // namespace wam::data
