// Windows, their order and their draws against brute force.
#include "wam/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "wam/base/error.h"
#include "wam/data/sample_drawer.h"
#include "wam/data/split.h"

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
      if (back < 0 || language[back] != language[first]) back_done = true;
      else add(back);
    }
    if (std::ssize(listed) >= most) break;
    if (!forward_done) {
      if (forward >= length || language[forward] != language[first]) forward_done = true;
      else add(forward);
    }
  }
  if (listed.empty()) return {};
  const std::set<int64_t> unique(listed.begin(), listed.end());
  Rows frames(unique.begin(), unique.end());
  if (frames.back() + 3 < length && std::ssize(frames) < most) frames.push_back(frames.back() + 3);
  else if (std::ssize(frames) <= 8) return {};
  else frames.resize(frames.size() - 7);
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
                              r.min_anchor_extent}) >= length;
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
      for (int64_t row = length * 2 / 3; row < length; ++row) language[static_cast<size_t>(row)] = 1;
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
  EXPECT_EQ(window->frame_rows, (Rows{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 17, 17, 17, 17}));
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

TEST(Permutation, IsABijection) {
  for (uint64_t size : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 100u, 1000u, 4097u}) {
    for (uint64_t epoch : {0u, 1u}) {
      const KeyedPermutation permutation(size, 7, epoch);
      std::set<uint64_t> images;
      for (uint64_t i = 0; i < size; ++i) images.insert(permutation(i));
      EXPECT_EQ(images.size(), size);
      EXPECT_EQ(*images.rbegin(), size - 1);
    }
  }
}

TEST(Permutation, LargeSizesStayInside) {
  for (uint64_t size : {uint64_t{1} << 33, (uint64_t{1} << 40) + 1, (uint64_t{1} << 62) + 12345}) {
    const KeyedPermutation permutation(size, 7, 3);
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < 1000; ++i) images.insert(permutation(i * (size / 1001)));
    EXPECT_EQ(images.size(), 1000u);
    EXPECT_LT(*images.rbegin(), size);
  }
}

TEST(Permutation, SeedsAndEpochsDiffer) {
  const KeyedPermutation a(1000, 1, 0), b(1000, 2, 0), c(1000, 1, 1);
  int same_seed = 0, same_epoch = 0, fixed = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    same_seed += a(i) == b(i);
    same_epoch += a(i) == c(i);
    fixed += a(i) == i;
  }
  // Each count is about Poisson with mean 1.
  EXPECT_LT(same_seed, 8);
  EXPECT_LT(same_epoch, 8);
  EXPECT_LT(fixed, 8);
}

// Over many epochs each element comes first equally often.
TEST(Permutation, FirstPlaceIsUniform) {
  std::map<uint64_t, int> counts;
  for (uint64_t epoch = 0; epoch < 2000; ++epoch) ++counts[KeyedPermutation(10, 3, epoch)(0)];
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 200, 6 * 13.5) << value;
  EXPECT_EQ(counts.size(), 10u);
}

TEST(SampleOrder, EveryRowOncePerEpoch) {
  const SampleOrder order({30, 12}, {}, 5);
  for (uint64_t epoch : {0u, 1u}) {
    std::set<std::pair<int64_t, int64_t>> seen;
    for (uint64_t i = 0; i < 42; ++i) {
      const OrderedRow row = order.at(epoch * 42 + i);
      EXPECT_LT(row.row, row.dataset == 0 ? 30 : 12);
      seen.insert({row.dataset, row.row});
    }
    EXPECT_EQ(seen.size(), 42u);
  }
}

TEST(SampleOrder, WeightsHoldInEveryRound) {
  const SampleOrder order({100, 100, 100}, {4, 1, 1e-9}, 5);
  std::map<int64_t, int> counts;
  std::map<int64_t, std::set<int64_t>> first_rows;
  for (uint64_t i = 0; i < SampleOrder::kRound; ++i) {
    const OrderedRow row = order.at(i);
    ++counts[row.dataset];
    first_rows[row.dataset].insert(row.row);
  }
  EXPECT_EQ(counts[2], 1);
  EXPECT_NEAR(counts[0], 4096 * 0.8, 2);
  EXPECT_NEAR(counts[1], 4096 * 0.2, 2);
  EXPECT_EQ(first_rows[0].size(), 100u);
}

TEST(SampleOrder, EachDatasetGoesThroughItsOwnEpochs) {
  const SampleOrder order({50, 50}, {3, 1}, 5);
  std::map<int64_t, std::map<int64_t, int>> counts;
  for (uint64_t i = 0; i < 2 * SampleOrder::kRound; ++i) {
    const OrderedRow row = order.at(i);
    ++counts[row.dataset][row.row];
  }
  for (const auto& [dataset, rows] : counts) {
    int low = 1 << 30, high = 0;
    for (const auto& [row, count] : rows) {
      low = std::min(low, count);
      high = std::max(high, count);
    }
    EXPECT_LE(high - low, 1) << dataset;
  }
}

TEST(SampleOrder, WrongWeightsAreRefused) {
  EXPECT_THROW(SampleOrder({5, 5}, {1}, 0), ConfigError);
  EXPECT_THROW(SampleOrder({5, 5}, {1, -1}, 0), ConfigError);
  EXPECT_THROW(SampleOrder({5}, {std::numeric_limits<double>::infinity()}, 0), ConfigError);
}

std::vector<Episode> episodes_of(const Rows& lengths) {
  std::vector<Episode> episodes;
  for (int64_t length : lengths) {
    episodes.push_back({100 + std::ssize(episodes), length, {}});
  }
  return episodes;
}

DrawSource source_of(const Rows& lengths, int64_t num_blocks = 2) {
  DrawSource source{WindowSampler(rules_of("libero_sim", num_blocks)), {}, {}, 0, "test"};
  for (const Episode& e : episodes_of(lengths)) source.episodes.push_back({e.index, e.length});
  for (int64_t i = 0; i < std::ssize(lengths); ++i) source.positions.push_back(i);
  return source;
}

SampleDrawer::Labels no_labels() {
  return [](int64_t, int64_t) { return std::make_shared<const Rows>(); };
}

TEST(Drawer, ShortEpisodesAreListedAndLeftOut) {
  const SampleDrawer drawer({source_of({40, 32, 33, 5})}, 1, 4);
  EXPECT_EQ(drawer.report().num_episodes, 2);
  EXPECT_EQ(drawer.report().num_rows, 73);
  ASSERT_EQ(drawer.report().excluded.size(), 2u);
  EXPECT_EQ(drawer.report().excluded[1].episode_index, 103);
  EXPECT_NE(drawer.report().text().find("103 (5 rows, 33 needed)"), std::string::npos);
  const WindowSampler sampler(rules_of("libero_sim", 2));
  EXPECT_EQ(drawer.report().num_serving,
            sampler.count_serving(40, {}) + sampler.count_serving(33, {}));
}

TEST(Drawer, NoEpisodeLeftIsAnError) {
  try {
    SampleDrawer({source_of({32, 5})}, 1, 4);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("at least 33 rows"), std::string::npos);
  }
}

TEST(Drawer, DrawsDependOnTheirPlaceOnly) {
  const SampleDrawer four({source_of({80, 90})}, 1, 4), eight({source_of({80, 90})}, 1, 8);
  for (int64_t g = 0; g < 64; ++g) {
    const Draw a = four.draw(g / 4, g % 4, no_labels());
    const Draw b = four.draw(g / 4, g % 4, no_labels());
    EXPECT_EQ(a.window.id.first_anchor, b.window.id.first_anchor);
    EXPECT_EQ(a.window.frame_rows, b.window.frame_rows);
    // Another batch size keeps the order of first attempts.
    const Draw c = eight.draw(g / 8, g % 8, no_labels());
    if (a.window.id.attempt == 0) {
      EXPECT_EQ(a.window.id.first_anchor, c.window.id.first_anchor);
    }
  }
}

TEST(Drawer, EveryServingRowComesAtFirstAttemptOnceAnEpoch) {
  const SampleDrawer drawer({source_of({60, 50})}, 9, 10);
  std::set<std::pair<int64_t, int64_t>> seen;
  int64_t first_attempts = 0, rejected = 0;
  for (int64_t g = 0; g < 110; ++g) {
    const SampleId id = drawer.draw(g / 10, g % 10, no_labels()).window.id;
    if (id.attempt > 0) {
      ++rejected;
      continue;
    }
    ++first_attempts;
    seen.insert({id.episode_index, id.first_anchor});
  }
  EXPECT_EQ(std::ssize(seen), first_attempts);
  EXPECT_EQ(first_attempts, drawer.report().num_serving);
  EXPECT_EQ(rejected, drawer.report().num_rows - drawer.report().num_serving);
}

TEST(Drawer, LanguageIsAskedForAndObeyed) {
  const SampleDrawer drawer({source_of({100})}, 9, 10);
  const auto labels = std::make_shared<Rows>(100, 0);
  std::fill(labels->begin() + 50, labels->end(), 1);
  const auto lookup = [&](int64_t, int64_t) -> std::shared_ptr<const Rows> { return labels; };
  for (int64_t g = 0; g < 100; ++g) {
    const Window window = drawer.draw(g / 10, g % 10, lookup).window;
    for (int64_t row : window.state_rows) {
      EXPECT_EQ((*labels)[row], (*labels)[window.id.first_anchor]);
    }
  }
}

TEST(Drawer, HopelessLanguageIsAnError) {
  const SampleDrawer drawer({source_of({100})}, 9, 10);
  const auto labels = std::make_shared<Rows>();
  for (int64_t i = 0; i < 100; ++i) labels->push_back(i);
  const auto lookup = [&](int64_t, int64_t) -> std::shared_ptr<const Rows> { return labels; };
  EXPECT_THROW(drawer.draw(0, 0, lookup), DataError);
}

TEST(Drawer, AMillionEpisodes) {
  Rows lengths;
  for (int64_t i = 0; i < 1'000'000; ++i) lengths.push_back(100 + i * 7919 % 400);
  const SampleDrawer drawer({source_of(lengths, 4)}, 1, 64);
  EXPECT_EQ(drawer.report().num_episodes, 1'000'000);
  std::set<int64_t> seen;
  for (int64_t g = 0; g < 6400; ++g) {
    seen.insert(drawer.draw(g / 64, g % 64, no_labels()).window.id.episode_index);
  }
  EXPECT_GT(seen.size(), 6300u);
}

TEST(Split, ByListLastAndShare) {
  const auto episodes = episodes_of(Rows(20, 5));
  const EpisodeSplit listed = split_episodes(episodes, {.validation_episodes = {103, 119}});
  EXPECT_EQ(listed.validation, (Rows{3, 19}));
  EXPECT_EQ(listed.train.size(), 18u);
  EXPECT_EQ(split_episodes(episodes, {.validation_last = 2}).validation, (Rows{18, 19}));
  EXPECT_TRUE(split_episodes(episodes, {}).validation.empty());
  const EpisodeSplit share = split_episodes(episodes, {.validation_fraction = 0.3, .seed = 4});
  EXPECT_FALSE(share.validation.empty());
  // Episodes added at the end do not move the others.
  const EpisodeSplit more =
      split_episodes(episodes_of(Rows(30, 5)), {.validation_fraction = 0.3, .seed = 4});
  EXPECT_TRUE(std::equal(share.validation.begin(), share.validation.end(), more.validation.begin()));
}

TEST(Split, ErrorsSayWhatIsWrong) {
  const auto episodes = episodes_of(Rows(4, 5));
  EXPECT_THROW(split_episodes(episodes, {.validation_episodes = {7}}), ConfigError);
  EXPECT_THROW(split_episodes(episodes, {.validation_episodes = {100}, .validation_last = 1}),
               ConfigError);
  EXPECT_THROW(split_episodes(episodes, {.validation_last = 4}), ConfigError);
  EXPECT_THROW(split_episodes(episodes, {.validation_fraction = 1}), ConfigError);
  EXPECT_THROW(split_episodes(episodes, {.validation_fraction = 1e-9}), ConfigError);
}

}  // namespace
}  // namespace wam::data
