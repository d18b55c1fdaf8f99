#include "wam/data/sampler.h"

#include <algorithm>
#include <set>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/strings.h"

namespace wam::data {
namespace {

constexpr int64_t kFramesPerBlock = 8;

void check_frames_are_distinct(const WindowRules& rules) {
  std::set<int64_t> frames;
  for (int64_t block = 0; block < rules.num_blocks; ++block) {
    for (int64_t offset : rules.frame_offsets) {
      const int64_t row = block * rules.macro_stride + offset;
      if (frames.insert(row).second) continue;
      throw ConfigError({.where = "embodiment.video_in_chunk_offsets",
                         .what = "blocks share camera frames, so that no window has 8 K + 1",
                         .got = "row " + std::to_string(row) + " twice at macro_stride " +
                                std::to_string(rules.macro_stride),
                         .expected = "frames of all blocks to differ",
                         .remedy = "Use offsets below the stride, or a stride between them."});
    }
  }
}

}  // namespace

SamplingMode parse_sampling_mode(const std::string& text) {
  if (text == "multi_anchor") return SamplingMode::kMultiAnchor;
  if (text == "fixed_window") return SamplingMode::kFixedWindow;
  const std::vector<std::string> names = {"multi_anchor", "fixed_window"};
  throw ConfigError({.where = "sampling_mode",
                     .what = "unknown mode",
                     .got = "'" + text + "'",
                     .remedy = name_hint(text, names)});
}

WindowRules window_rules(const Embodiment& embodiment, SamplingMode mode, int64_t num_blocks) {
  return {mode,
          num_blocks,
          embodiment.action_horizon,
          embodiment.macro_stride,
          embodiment.video_in_chunk_offsets,
          embodiment.min_anchor_extent};
}

WindowSampler::WindowSampler(WindowRules rules) : rules_(std::move(rules)) {
  if (rules_.num_blocks < 1) {
    throw ConfigError({.where = "model.num_blocks",
                       .what = "no block in a window",
                       .got = std::to_string(rules_.num_blocks),
                       .expected = "at least 1",
                       .remedy = "Raise it."});
  }
  WAM_CHECK(std::ssize(rules_.frame_offsets) == kFramesPerBlock && rules_.macro_stride > 0 &&
            rules_.action_horizon > 0);
  extent_ = std::max({rules_.frame_offsets.back(), rules_.action_horizon, rules_.macro_stride,
                      rules_.min_anchor_extent});
  if (rules_.mode == SamplingMode::kMultiAnchor) check_frames_are_distinct(rules_);
}

int64_t WindowSampler::min_episode_length() const {
  if (rules_.mode == SamplingMode::kFixedWindow) return 1;
  const int64_t last_anchor = (rules_.num_blocks - 1) * rules_.macro_stride;
  return std::max(last_anchor + extent_, boundary_frame(last_anchor)) + 1;
}

// The micro stride is the distance of a block's last two frames. Frames of earlier blocks never
// lie beyond the last block's, since O is the same for all.
int64_t WindowSampler::boundary_frame(int64_t last_anchor) const {
  const std::vector<int64_t>& offsets = rules_.frame_offsets;
  const int64_t micro_stride = offsets[kFramesPerBlock - 1] - offsets[kFramesPerBlock - 2];
  return last_anchor + offsets.back() + micro_stride;
}

std::vector<int64_t> WindowSampler::anchors(int64_t first, int64_t length,
                                            std::span<const int64_t> labels) const {
  const auto same_language = [&](int64_t row) {
    return labels.empty() || labels[static_cast<size_t>(row)] == labels[static_cast<size_t>(first)];
  };
  std::vector<int64_t> found;
  const auto is_full = [&] { return std::ssize(found) == rules_.num_blocks; };
  // Adds the anchor if it fits; false if its direction ends here.
  const auto take = [&](int64_t anchor) {
    if (anchor < 0 || anchor >= length || !same_language(anchor)) return false;
    if (!is_full() && anchor + extent_ < length) found.push_back(anchor);
    return true;
  };
  bool backward = true, forward = take(first);
  for (int64_t away = rules_.macro_stride; !is_full() && (backward || forward);
       away += rules_.macro_stride) {
    backward = backward && take(first - away);
    forward = forward && take(first + away);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool WindowSampler::may_serve(int64_t first_anchor, int64_t length) const {
  if (rules_.mode == SamplingMode::kFixedWindow) return first_anchor >= 0 && first_anchor < length;
  const std::vector<int64_t> found = anchors(first_anchor, length, {});
  return std::ssize(found) == rules_.num_blocks && boundary_frame(found.back()) < length;
}

std::optional<Window> WindowSampler::window(int64_t first_anchor, int64_t length,
                                            std::span<const int64_t> labels) const {
  WAM_CHECK(first_anchor >= 0 && first_anchor < length) << first_anchor << " of " << length;
  WAM_CHECK(labels.empty() || std::ssize(labels) == length);
  if (rules_.mode == SamplingMode::kFixedWindow) return fixed_window(first_anchor, length);
  const std::vector<int64_t> found = anchors(first_anchor, length, labels);
  if (std::ssize(found) != rules_.num_blocks || boundary_frame(found.back()) >= length) {
    return std::nullopt;
  }
  return multi_anchor_window(found);
}

int64_t WindowSampler::count_serving(int64_t length, std::span<const int64_t> labels) const {
  if (rules_.mode == SamplingMode::kFixedWindow) return length;
  int64_t count = 0;
  for (int64_t row = 0; row < length; ++row) {
    const std::vector<int64_t> found = anchors(row, length, labels);
    const bool full = std::ssize(found) == rules_.num_blocks;
    count += full && boundary_frame(found.back()) < length ? 1 : 0;
  }
  return count;
}

Window WindowSampler::multi_anchor_window(const std::vector<int64_t>& anchors) const {
  Window window;
  for (int64_t anchor : anchors) {
    for (int64_t offset : rules_.frame_offsets) window.frame_rows.push_back(anchor + offset);
    for (int64_t a = 0; a < rules_.action_horizon; ++a) window.action_rows.push_back(anchor + a);
    window.state_rows.push_back(anchor);
  }
  std::sort(window.frame_rows.begin(), window.frame_rows.end());
  window.frame_rows.push_back(boundary_frame(anchors.back()));
  window.action_valid.assign(window.action_rows.size(), 1);
  window.frame_valid.assign(window.frame_rows.size(), 1);
  return window;
}

Window WindowSampler::fixed_window(int64_t first, int64_t length) const {
  Window window;
  const int64_t num_actions = rules_.num_blocks * rules_.action_horizon;
  for (int64_t i = 0; i <= kFramesPerBlock * rules_.num_blocks; ++i) {
    window.frame_rows.push_back(std::min(first + i, length - 1));
    window.frame_valid.push_back(first + i < length);
  }
  for (int64_t i = 0; i < num_actions; ++i) {
    const int64_t row = std::min(first + i, length - 1);
    window.action_rows.push_back(row);
    window.action_valid.push_back(first + i < length);
    if (i % rules_.action_horizon == 0) window.state_rows.push_back(row);
  }
  return window;
}

}  // namespace wam::data
