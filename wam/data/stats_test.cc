#include "wam/data/stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/philox.h"
#include "wam/data/lerobot_testing.h"
#include "wam/data/rank_search.h"
#include "wam/data/video_testing.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

void expect_rank(const std::vector<double>& values, int64_t rank, double expected) {
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  RankSearch search(rank, *min, *max);
  int passes = 0;
  while (!search.is_done()) {
    ASSERT_LT(++passes, 15);
    search.start_pass();
    for (const double value : values) search.add(value);
    search.end_pass();
  }
  EXPECT_EQ(search.value(), expected);
}

TEST(RankSearchTest, FindsEveryRank) {
  Random random(1, RandomUse::kTest, 0, 0);
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  std::vector<std::vector<double>> cases = {
      {3}, {0, 0, 0, 1}, {tiny, 2 * tiny, 0, 3 * tiny}, {-huge, huge, 0, 1}, {1, 1 + 0x1p-52, 2}};
  cases.emplace_back();
  for (int i = 0; i < 500; ++i) cases.back().push_back(random.normal());
  cases.emplace_back();
  for (int i = 0; i < 500; ++i) cases.back().push_back(std::pow(10.0, random.normal() * 50));
  for (std::vector<double>& values : cases) {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    for (size_t rank = 0; rank < sorted.size(); rank += 1 + sorted.size() / 40) {
      expect_rank(values, static_cast<int64_t>(rank), sorted[rank]);
    }
  }
}

TEST(RankSearchTest, QuantilesAsNumpyGivesThem) {
  // numpy.quantile([1, 2, 4, 8], [0.01, 0.99]) is [1.03, 7.88].
  const std::vector<double> values = {1, 2, 4, 8};
  const auto quantile = [&](double q) {
    const QuantilePlace place = quantile_place(q, 4);
    return interpolate(values[place.low], values[place.high], place.fraction);
  };
  EXPECT_DOUBLE_EQ(quantile(0.01), 1.03);
  EXPECT_DOUBLE_EQ(quantile(0.99), 7.88);
  EXPECT_EQ(quantile(1), 8);
  EXPECT_EQ(quantile(0), 1);
}

// The plain way, all values in memory.
struct PlainStats {
  double min, max, mean, std, q01, q99;
};

PlainStats plain_stats(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto quantile = [&](double q) {
    const double place = q * static_cast<double>(values.size() - 1);
    const auto low = static_cast<size_t>(place);
    const size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (place - std::floor(place));
  };
  return {values.front(), values.back(),
          mean,           std::sqrt(squares / static_cast<double>(values.size())),
          quantile(0.01), quantile(0.99)};
}

// Sums of n values of magnitude 1 differ by at most about n epsilon from each other.
void expect_stats(const KeyStats& got, size_t i, const std::vector<double>& values) {
  const PlainStats expected = plain_stats(values);
  const double bound =
      4 * static_cast<double>(values.size()) * std::numeric_limits<double>::epsilon();
  EXPECT_EQ(got.values.at("min")[i], expected.min);
  EXPECT_EQ(got.values.at("max")[i], expected.max);
  EXPECT_NEAR(got.values.at("mean")[i], expected.mean, bound);
  EXPECT_NEAR(got.values.at("std")[i], expected.std, bound);
  EXPECT_NEAR(got.values.at("q01")[i], expected.q01, bound);
  EXPECT_NEAR(got.values.at("q99")[i], expected.q99, bound);
}

class StatsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.lengths = {40, 30, 7};
    options_.cameras = {"observation.images.top"};
    write_test_dataset(root_, options_);
    dataset_ = open_dataset(root_);
  }
  TempDir temp_;
  fs::path root_ = temp_ / "set";
  TestDatasetOptions options_;
  std::unique_ptr<Dataset> dataset_;
};

TEST_F(StatsTest, AbsoluteSlices) {
  const NormStats stats = compute_statistics(*dataset_, modality_slices(*dataset_));
  for (int64_t dim = 0; dim < 4; ++dim) {
    std::vector<double> values;
    for (const Episode& episode : dataset_->episodes()) {
      const HostTensor column = dataset_->read_table(episode).numeric.at("observation.state");
      for (int64_t row = 0; row < episode.length; ++row) {
        values.push_back(column.as<double>()[row * 4 + dim]);
      }
    }
    const KeyStats& key = stats.state.at(dim < 3 ? "arm" : "gripper");
    expect_stats(key, static_cast<size_t>(dim % 3), values);
  }
  EXPECT_EQ(stats.action.at("arm").width, 3);
}

TEST_F(StatsTest, RelativeActions) {
  for (const bool per_step : {false, true}) {
    const int64_t horizon = 8;
    const NormStats stats = compute_statistics(*dataset_, modality_slices(*dataset_, {"arm"}),
                                               {.horizon = horizon, .per_step = per_step});
    std::vector<std::vector<double>> values(static_cast<size_t>(per_step ? horizon * 3 : 3));
    for (const Episode& episode : dataset_->episodes()) {
      const EpisodeTable table = dataset_->read_table(episode);
      const auto action = table.numeric.at("action").as<double>();
      const auto state = table.numeric.at("observation.state").as<double>();
      for (int64_t t = 0; t + horizon <= episode.length; ++t) {
        for (int64_t h = 0; h < horizon; ++h) {
          for (int64_t d = 0; d < 3; ++d) {
            values[static_cast<size_t>((per_step ? h * 3 : 0) + d)].push_back(
                action[(t + h) * 3 + d] - state[t * 4 + d]);
          }
        }
      }
    }
    for (size_t i = 0; i < values.size(); ++i) expect_stats(stats.action.at("arm"), i, values[i]);
  }
}

TEST_F(StatsTest, StepsOfAbsoluteSlices) {
  std::vector<StatsSlice> slices = modality_slices(*dataset_);
  StatsSlice& arm = slices.back();
  ASSERT_TRUE(arm.is_action);
  arm.per_step = true;
  const NormStats stats = compute_statistics(*dataset_, slices, {.horizon = 8});
  std::vector<std::vector<double>> values(24);
  for (const Episode& episode : dataset_->episodes()) {
    const EpisodeTable table = dataset_->read_table(episode);
    const auto action = table.numeric.at("action").as<double>();
    for (int64_t t = 0; t + 8 <= episode.length; ++t) {
      for (int64_t i = 0; i < 24; ++i) values[static_cast<size_t>(i)].push_back(action[t * 3 + i]);
    }
  }
  for (size_t i = 0; i < values.size(); ++i) expect_stats(stats.action.at("arm"), i, values[i]);
}

TEST_F(StatsTest, ChosenEpisodesOnly) {
  const NormStats stats =
      compute_statistics(*dataset_, modality_slices(*dataset_), {.episodes = {1}});
  std::vector<double> values;
  const HostTensor column =
      dataset_->read_table(dataset_->episodes()[1]).numeric.at("observation.state");
  for (int64_t row = 0; row < 30; ++row) values.push_back(column.as<double>()[row * 4 + 3]);
  expect_stats(stats.state.at("gripper"), 0, values);
}

TEST_F(StatsTest, MetadataReadsBack) {
  const NormStats stats = compute_statistics(*dataset_, modality_slices(*dataset_, {"arm"}),
                                             {.horizon = 4, .per_step = true});
  const fs::path path = temp_ / "metadata.json";
  write_text(path, dataset_metadata_json(*dataset_, "robot", stats, {"arm"}));
  const NormStats again = load_metadata_stats(path, "robot");
  EXPECT_EQ(again.state.at("arm").values, stats.state.at("arm").values);
  EXPECT_EQ(again.action.at("arm").values, stats.action.at("arm").values);
  EXPECT_EQ(again.action.at("arm").width, 3);
  const auto json = nlohmann::json::parse(read_text_file(path))["robot"];
  EXPECT_EQ(json["modalities"]["video"]["top"]["resolution"], (nlohmann::json{64, 48}));
  EXPECT_EQ(json["modalities"]["action"]["arm"]["absolute"], false);
  EXPECT_EQ(json["embodiment_tag"], "robot");
  write_text(root_ / "meta/relative_stats_dreamzero.json", relative_stats_json(stats.action));
  EXPECT_EQ(open_dataset(root_)->relative_stats().at("arm").at("q01"),
            stats.action.at("arm").values.at("q01"));
}

TEST_F(StatsTest, RelativeKeysMustExist) {
  EXPECT_THROW(modality_slices(*dataset_, {"gripper"}), ConfigError);
  EXPECT_THROW(modality_slices(*dataset_, {"none"}), ConfigError);
}

TEST_F(StatsTest, HorizonLongerThanAllEpisodes) {
  EXPECT_THROW(compute_statistics(*dataset_, modality_slices(*dataset_, {"arm"}), {.horizon = 41}),
               DataError);
}

// gr1's own stats.json was made by GEAR's tools, in float32: values agree to its epsilon, and sums
// of n rows, added one after the other, to n halves of it.
TEST_F(StatsTest, AgreesWithThePublishedStatisticsOfGr1) {
  const fs::path root = real_data_folder() / "gr1_picknplace_v20";
  if (!fs::exists(root)) GTEST_SKIP() << "absent: gr1_picknplace_v20 in WAM_DATA_DIR";
  const auto dataset = open_dataset(root);
  const std::vector<StatsSlice> slices = modality_slices(*dataset);
  const NormStats stats = compute_statistics(*dataset, slices);
  const double epsilon = std::numeric_limits<float>::epsilon();
  for (const StatsSlice& slice : slices) {
    const KeyStats& key = (slice.is_action ? stats.action : stats.state).at(slice.key);
    for (const auto& [name, published] : dataset->stats().at(slice.column)) {
      const double rows = name == "mean" || name == "std" ? 2096.0 / 2 : 2;
      for (int64_t i = 0; i < slice.width(); ++i) {
        const double scale =
            std::max(std::abs(key.values.at("min")[i]), std::abs(key.values.at("max")[i]));
        EXPECT_NEAR(key.values.at(name)[i], published[slice.begin + i], epsilon * rows * scale)
            << slice.key << " " << name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace wam::data
