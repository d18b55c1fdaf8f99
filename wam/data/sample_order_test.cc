// The order of draws, the draws and the split into training and held-out episodes.
#include "wam/data/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "wam/base/error.h"
#include "wam/data/sample_drawer.h"
#include "wam/data/split.h"

namespace wam::data {
namespace {

using Rows = std::vector<int64_t>;

WindowRules libero_rules(int64_t num_blocks) {
  return window_rules(embodiment_preset("libero_sim"), SamplingMode::kMultiAnchor, num_blocks);
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

TEST(SampleOrder, EachDatasetGoesThroughItsOwnEpochs) {
  const SampleOrder order({50, 50}, {3, 1}, 5);
  std::map<int64_t, std::map<int64_t, int>> counts;
  for (uint64_t i = 0; i < 8000; ++i) {
    const OrderedRow row = order.at(i);
    ++counts[row.dataset][row.row];
  }
  for (const auto& [dataset, rows] : counts) {
    EXPECT_EQ(rows.size(), 50u);
    for (const auto& [row, count] : rows) EXPECT_EQ(count, dataset == 0 ? 120 : 40);
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
  DrawSource source{WindowSampler(libero_rules(num_blocks)), {}, {}, 0, "test"};
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
  const WindowSampler sampler(libero_rules(2));
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
  EXPECT_TRUE(
      std::equal(share.validation.begin(), share.validation.end(), more.validation.begin()));
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
