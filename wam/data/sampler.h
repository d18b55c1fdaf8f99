// Which rows of an episode a sample uses, given one row of it: pure functions of lengths and
// language. Letters: K blocks, A actions per block, M macro stride, O the 8 frame offsets.
//
// multi_anchor: anchors lie M apart. Starting from the drawn row they are taken alternately
// backward and forward while the language at them is that of the drawn row and the episode lasts;
// a direction ends at its first anchor that fails this. An anchor is used if its whole extent lies
// in the episode: row anchor + extent() exists. (The drawn row itself may fail that, near the
// episode's end; its earlier neighbours then serve.) K anchors give K times 8 frames, A actions
// and one state, plus one boundary frame a micro stride after the last frame. Fewer than K anchors,
// or a boundary frame outside the episode, make no window.
//
// fixed_window: 8K+1 frames on end from the drawn row, K times A actions on end, a state every A
// rows. Past the episode's end its last row repeats and is marked invalid.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wam/data/embodiment.h"
#include "wam/data/types.h"

namespace wam::data {

enum class SamplingMode { kMultiAnchor, kFixedWindow };

// "multi_anchor", "fixed_window"; throws ConfigError with the nearest name.
SamplingMode parse_sampling_mode(const std::string& text);

struct WindowRules {
  SamplingMode mode = SamplingMode::kMultiAnchor;
  int64_t num_blocks = 0;              // K
  int64_t action_horizon = 0;          // A
  int64_t macro_stride = 0;            // M
  std::vector<int64_t> frame_offsets;  // O
  int64_t min_anchor_extent = 0;
};
WindowRules window_rules(const Embodiment& embodiment, SamplingMode mode, int64_t num_blocks);

class WindowSampler {
 public:
  // Throws ConfigError if K is not positive or if blocks share camera frames (a window would then
  // never have 8K+1 of them).
  explicit WindowSampler(WindowRules rules);

  const WindowRules& rules() const { return rules_; }
  // Rows that must exist after an anchor: the largest of max(O), A, M and min_anchor_extent.
  int64_t extent() const { return extent_; }
  // Shortest episode in which some row gives a window; 1 for fixed_window.
  int64_t min_episode_length() const;

  // The window of the drawn row; `labels` tell languages apart, one per row (empty: all the same).
  // The ids in it are left for the caller.
  std::optional<Window> window(int64_t first_anchor, int64_t length,
                               std::span<const int64_t> labels) const;
  // Whether the drawn row gives a window if the language never changes: necessary in any case, and
  // cheap.
  bool may_serve(int64_t first_anchor, int64_t length) const;
  // Rows of an episode that give a window.
  int64_t count_serving(int64_t length, std::span<const int64_t> labels) const;

 private:
  std::vector<int64_t> anchors(int64_t first, int64_t length,
                               std::span<const int64_t> labels) const;
  int64_t boundary_frame(int64_t last_anchor) const;
  Window multi_anchor_window(const std::vector<int64_t>& anchors) const;
  Window fixed_window(int64_t first, int64_t length) const;

  WindowRules rules_;
  int64_t extent_ = 0;
};

}  // namespace wam::data
