// Windows against RLinf's rule and against brute force.
#include "wam/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "wam/base/error.h"
#include "wam/base/philox.h"

namespace wam::data {
namespace {

using Rows = std::vector<int64_t>;

WindowRules rules_of(const std::string& preset, int64_t num_blocks) {
  return window_rules(embodiment_preset(preset), SamplingMode::kMultiAnchor, num_blocks);
}

// RLinf's choice of camera frames: lists and sets, its fixed 23-row and 3-row constants; empty
// unless the window is whole. Written from its description, unlike the sampler in every step.
Rows rlinf_frames(int64_t first, const Rows& language, int64_t blocks, int64_t stride) {
  const auto length = std::ssize(language);
  const int64_t most = 8 * blocks + 1;
  Rows listed;
  const auto add = [&](int64_t anchor) {
    if (anchor < 0 || anchor + 23 >= length || std::ssize(listed) + 8 > most) return;
    for (int64_t j = 0; j < 8; ++j) listed.push_back(anchor + 3 * j);
  };
  add(first);
  bool back_done = false, forward_done = false;
  for (int64_t step = 1; std::ssize(listed) < most && !(back_done && forward_done); ++step) {
    const int64_t back = first - stride * step, forward = first + stride * step;
    if (!back_done) {
      if (back < 0 || language[back] != language[first])
        back_done = true;
      else
        add(back);
    }
    if (std::ssize(listed) >= most) break;
    if (!forward_done) {
      if (forward >= length || language[forward] != language[first])
        forward_done = true;
      else
        add(forward);
    }
  }
  if (listed.empty()) return {};
  const std::set<int64_t> unique(listed.begin(), listed.end());
  Rows frames(unique.begin(), unique.end());
  if (frames.back() + 3 < length && std::ssize(frames) < most)
    frames.push_back(frames.back() + 3);
  else if (std::ssize(frames) <= 8)
    return {};
  else
    frames.resize(frames.size() - 7);
  return std::ssize(frames) == most ? frames : Rows{};
}

TEST(MultiAnchor, EqualsRlinfOnEveryRow) {
  const WindowSampler sampler(rules_of("libero_sim_rlinf", 4));
  for (int64_t length = 1; length < 130; ++length) {
    const Rows language(static_cast<size_t>(length), 5);
    for (int64_t first = 0; first < length; ++first) {
      const auto window = sampler.window(first, length, language);
      const Rows want = rlinf_frames(first, language, 4, 16);
      ASSERT_EQ(window.has_value(), !want.empty()) << first << " of " << length;
      if (window) {
        ASSERT_EQ(window->frame_rows, want) << first << " of " << length;
      }
    }
  }
}

TEST(MultiAnchor, EqualsRlinfWhereLanguageChanges) {
  const WindowSampler sampler(rules_of("libero_sim_rlinf", 3));
  Random random(11, RandomUse::kTest, 0, 0);
  int64_t served = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Rows language;
    while (std::ssize(language) < 150) {
      const auto run = static_cast<size_t>(1 + random.below(90));
      language.insert(language.end(), run, static_cast<int64_t>(random.below(2)));
    }
    const auto first = static_cast<int64_t>(random.below(language.size()));
    const auto window = sampler.window(first, std::ssize(language), language);
    const Rows want = rlinf_frames(first, language, 3, 16);
    ASSERT_EQ(window.has_value(), !want.empty());
    if (window) {
      ASSERT_EQ(window->frame_rows, want);
    }
    served += window.has_value();
  }
  EXPECT_GT(served, 50);
}

// The sampling rule in words, for any preset: the anchors' longest run around the drawn row.
std::optional<Window> brute_window(const WindowSampler& sampler, int64_t first, int64_t length,
                                   const Rows& language) {
  const WindowRules& r = sampler.rules();
  Rows lasting = {first};  // anchors in reach, in the order they are taken
  bool backward = true, forward = true;
  for (int64_t k = 1; k < length; ++k) {
    const int64_t back = first - k * r.macro_stride, ahead = first + k * r.macro_stride;
    backward = backward && back >= 0 && language[std::max<int64_t>(back, 0)] == language[first];
    if (backward) lasting.push_back(back);
    forward = forward && ahead < length && language[std::min(ahead, length - 1)] == language[first];
    if (forward) lasting.push_back(ahead);
  }
  std::erase_if(lasting, [&](int64_t anchor) {
    return anchor + std::max({r.frame_offsets.back(), r.action_horizon, r.macro_stride,
                              r.min_anchor_extent}) >=
           length;
  });
  if (std::ssize(lasting) < r.num_blocks) return std::nullopt;
  lasting.resize(static_cast<size_t>(r.num_blocks));
  std::sort(lasting.begin(), lasting.end());
  Window window;
  std::set<int64_t> frames;
  for (int64_t anchor : lasting) {
    for (int64_t offset : r.frame_offsets) frames.insert(anchor + offset);
    for (int64_t a = 0; a < r.action_horizon; ++a) window.action_rows.push_back(anchor + a);
    window.state_rows.push_back(anchor);
  }
  frames.insert(*frames.rbegin() + r.frame_offsets[1] - r.frame_offsets[0]);
  if (*frames.rbegin() >= length) return std::nullopt;
  window.frame_rows.assign(frames.begin(), frames.end());
  return window;
}

TEST(MultiAnchor, EqualsBruteForceForEveryPreset) {
  for (const std::string& preset : embodiment_preset_names()) {
    const WindowSampler sampler(rules_of(preset, 3));
    for (int64_t length = 1; length < 140; length += 3) {
      Rows language(static_cast<size_t>(length), 0);
      for (int64_t row = length * 2 / 3; row < length; ++row)
        language[static_cast<size_t>(row)] = 1;
      for (int64_t first = 0; first < length; ++first) {
        const auto got = sampler.window(first, length, language);
        const auto want = brute_window(sampler, first, length, language);
        ASSERT_EQ(got.has_value(), want.has_value()) << preset << " " << first << " of " << length;
        if (!got) continue;
        ASSERT_EQ(got->frame_rows, want->frame_rows);
        ASSERT_EQ(got->action_rows, want->action_rows);
        ASSERT_EQ(got->state_rows, want->state_rows);
        ASSERT_EQ(std::ssize(got->frame_rows), 25);
      }
    }
  }
}

TEST(MultiAnchor, LiberoWindowByHand) {
  const WindowSampler sampler(rules_of("libero_sim", 2));
  EXPECT_EQ(sampler.extent(), 16);
  EXPECT_EQ(sampler.min_episode_length(), 33);
  const auto window = sampler.window(20, 100, {});
  ASSERT_TRUE(window);
  // Backward comes first: anchors 4 and 20.
  EXPECT_EQ(window->state_rows, (Rows{4, 20}));
  EXPECT_EQ(window->frame_rows,
            (Rows{4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36}));
  EXPECT_EQ(window->action_rows.front(), 4);
  EXPECT_EQ(window->action_rows.back(), 35);
  EXPECT_EQ(window->action_valid, std::vector<uint8_t>(32, 1));
}

TEST(MultiAnchor, MinimalLengthIsSharp) {
  for (const std::string& preset : embodiment_preset_names()) {
    for (int64_t blocks : {1, 2, 4}) {
      const WindowSampler sampler(rules_of(preset, blocks));
      const int64_t least = sampler.min_episode_length();
      EXPECT_GT(sampler.count_serving(least, {}), 0) << preset;
      EXPECT_EQ(sampler.count_serving(least - 1, {}), 0) << preset;
    }
  }
}

TEST(MultiAnchor, MayServeIsNecessary) {
  const WindowSampler sampler(rules_of("libero_sim", 2));
  const Rows language(60, 0);
  for (int64_t first = 0; first < 60; ++first) {
    EXPECT_EQ(sampler.may_serve(first, 60), sampler.window(first, 60, language).has_value());
  }
}

TEST(MultiAnchor, SharedFramesAreAConfigError) {
  WindowRules rules = rules_of("libero_sim", 3);
  rules.frame_offsets = {0, 3, 6, 9, 12, 15, 18, 21};
  rules.macro_stride = 12;
  EXPECT_THROW(WindowSampler{rules}, ConfigError);
  rules.num_blocks = 0;
  EXPECT_THROW(WindowSampler{rules}, ConfigError);
}

TEST(FixedWindow, RepeatsTheLastRow) {
  WindowRules rules = rules_of("libero_sim", 2);
  rules.mode = SamplingMode::kFixedWindow;
  rules.action_horizon = 10;
  const WindowSampler sampler(rules);
  const auto window = sampler.window(5, 18, {});
  ASSERT_TRUE(window);
  EXPECT_EQ(window->frame_rows,
            (Rows{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 17, 17, 17, 17}));
  EXPECT_EQ(window->state_rows, (Rows{5, 15}));
  EXPECT_EQ(window->action_rows.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(window->action_rows[i], std::min<int64_t>(5 + static_cast<int64_t>(i), 17));
    EXPECT_EQ(window->action_valid[i], i < 13);
    if (i < 17) {
      EXPECT_EQ(window->frame_valid[i], i < 13);
    }
  }
  EXPECT_EQ(sampler.min_episode_length(), 1);
  EXPECT_EQ(sampler.count_serving(18, {}), 18);
}

TEST(SamplingMode, Names) {
  EXPECT_EQ(parse_sampling_mode("fixed_window"), SamplingMode::kFixedWindow);
  EXPECT_THROW(parse_sampling_mode("multi"), ConfigError);
}

}  // namespace
}  // namespace wam::data
