#include "wam/data/selection.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "wam/base/error.h"
#include "wam/data/fake_dataset.h"
#include "wam/data/sample_drawer.h"

namespace wam::data {
namespace {

using Rows = std::vector<int64_t>;

// Ten episodes of indexes 10, 20, ... 100; the even ones are of two tasks.
class NamedDataset : public FakeDataset {
 public:
  NamedDataset() : FakeDataset({.lengths = std::vector<int64_t>(10, 60)}) {
    named_ = FakeDataset::episodes();
    for (size_t i = 0; i < named_.size(); ++i) {
      named_[i].tasks = {i % 2 == 0 ? "pick up the cup" : "put it down"};
      if (i == 4) named_[i].tasks.push_back("put it down");
    }
  }
  const std::vector<Episode>& episodes() const override { return named_; }

 private:
  std::vector<Episode> named_;
};

Selection select(const SelectionOptions& options) {
  return select_episodes(NamedDataset(), options, "dataset");
}

std::string error_of(const SelectionOptions& options) {
  try {
    select(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

TEST(IndexRanges, AreReadAndAsked) {
  const IndexRanges ranges = IndexRanges::parse({"7", "0:3", " 20 : ", ":1"}, "x");
  for (const int64_t in : {0, 1, 2, 7, 20, 1'000'000}) EXPECT_TRUE(ranges.contains(in)) << in;
  for (const int64_t out : {3, 6, 8, 19}) EXPECT_FALSE(ranges.contains(out)) << out;
  EXPECT_EQ(to_text(ranges.ranges()[2]), "20:");
  for (const char* bad : {"", "a", "3:3", "5:2", "-1", "1:2:3", "1.5", "99999999999999999999"}) {
    EXPECT_THROW(IndexRanges::parse({bad}, "x"), ConfigError) << bad;
  }
}

TEST(Selection, Patterns) {
  EXPECT_TRUE(fits_pattern("Pick up the cup", "pick*"));
  EXPECT_TRUE(fits_pattern("Pick up the cup", "*UP*c?p"));
  EXPECT_TRUE(fits_pattern("", "*"));
  EXPECT_FALSE(fits_pattern("Pick up the cup", "pick"));
  EXPECT_FALSE(fits_pattern("Pick up the cup", "?"));
  EXPECT_FALSE(fits_pattern("", "?*"));
}

TEST(Selection, EverythingByDefault) {
  const Selection all = select({});
  EXPECT_EQ(all.split.train.size(), 10u);
  EXPECT_TRUE(all.split.validation.empty());
  EXPECT_EQ(all.text(), "");
}

TEST(Selection, EpisodesAndTasks) {
  EXPECT_EQ(select({.exclude_episodes = {10, 100}}).split.train, (Rows{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(select({.episodes = IndexRanges::parse({"30:60"}, "x")}).split.train, (Rows{2, 3, 4}));
  EXPECT_EQ(select({.tasks = {"put*"}}).split.train, (Rows{1, 3, 4, 5, 7, 9}));
  const Selection picked = select({.exclude_tasks = {"PUT IT DOWN"}});
  EXPECT_EQ(picked.split.train, (Rows{0, 2, 6, 8}));
  expect_contains(picked.text(), "6 episodes of other tasks");
}

TEST(Selection, WhatIsLeftIsSplit) {
  const Selection chosen =
      select({.exclude_episodes = {100}, .tasks = {"put*"}, .split = {.validation_last = 2}});
  EXPECT_EQ(chosen.split.validation, (Rows{5, 7}));
  EXPECT_EQ(chosen.split.train, (Rows{1, 3, 4}));
}

TEST(Selection, ErrorsSayWhatIsWrong) {
  expect_contains(error_of({.exclude_episodes = {7}}), "dataset.exclude_episodes] dataset has no");
  expect_contains(error_of({.episodes = IndexRanges::parse({"101:"}, "x")}), "dataset.episodes]");
  expect_contains(error_of({.exclude_episodes = IndexRanges::parse({"0:"}, "x")}),
                  "no episode is left");
  expect_contains(error_of({.tasks = {"pick up teh cup"}}), "Did you mean 'pick up the cup'?");
  expect_contains(error_of({.exclude_tasks = {"*"}}), "no episode is left");
  expect_contains(error_of({.split = {.validation_episodes = {50}}, .episodes = {50}}),
                  "none of these is left to train on");
  expect_contains(error_of({.drop_frames = {"10:3"}}), "not rows of an episode");
  expect_contains(error_of({.drop_frames = {"11[0:3]"}}), "no such episode");
  expect_contains(error_of({.drop_frames = {"10[50:61]"}}), "rows within 0:60");
  expect_contains(error_of({.drop_frames = {"10:20[5]"}}), "rows of several episodes");
  const FakeDataset unnamed;
  EXPECT_THROW(select_episodes(unnamed, {.tasks = {"pick*"}}, "dataset"), DataError);
}

TEST(Selection, NoWindowTouchesDroppedRows) {
  const Selection chosen =
      select({.episodes = {10, 20}, .drop_frames = {"10[20:23]", "20[0:5,55:]", "20[4:10]"}});
  EXPECT_EQ(chosen.num_dropped_rows, 3 + 15);
  const WindowRules rules{.mode = SamplingMode::kMultiAnchor,
                          .num_blocks = 1,
                          .action_horizon = 8,
                          .macro_stride = 8,
                          .frame_offsets = {0, 1, 2, 3, 4, 5, 6, 7},
                          .min_anchor_extent = 0};
  DrawSource source{WindowSampler(rules), {}, chosen.split.train, 0, "test", chosen.dropped};
  for (int64_t i = 1; i <= 10; ++i) source.episodes.push_back({10 * i, 60});
  const SampleDrawer drawer({source}, 1, 8);
  EXPECT_EQ(drawer.report().num_episodes, 2);
  EXPECT_EQ(drawer.report().num_rows, 57 + 45);
  const auto labels = [](int64_t, int64_t) { return std::make_shared<Rows>(60, 0); };
  std::set<std::pair<int64_t, int64_t>> anchors;
  for (int64_t g = 0; g < 800; ++g) {
    const Window window = drawer.draw(g / 8, g % 8, labels).window;
    anchors.insert({window.id.episode_index, window.id.first_anchor});
    for (const auto* rows : {&window.frame_rows, &window.action_rows, &window.state_rows}) {
      for (const int64_t row : *rows) {
        const bool kept = window.id.episode_index == 10 ? row < 20 || (row >= 23 && row < 60)
                                                        : row >= 10 && row < 55;
        EXPECT_TRUE(kept) << window.id.episode_index << " " << row;
      }
    }
  }
  // 800 draws go through all 102 rows.
  EXPECT_EQ(std::ssize(anchors), drawer.report().num_serving);
}

}  // namespace
}  // namespace wam::data
