// Runs on several datasets: of other sizes, rates and formats, in stated shares, across a resume.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/e2e/small_run.h"
#include "wam/base/error.h"
#include "wam/data/repack.h"
#include "wam/train/evaluation.h"
#include "wam/train/run_data.h"
#include "wam/train/run_plan.h"

namespace wam {
namespace {

// The small world again, seen at 48 pixels and 15 frames a second, as v3.0.
const std::filesystem::path& other_dataset() {
  static const TempDir folder;
  static const std::filesystem::path path = [] {
    sim::CollectOptions options;
    options.path = folder / "v21";
    options.episodes = 5;
    options.seed = 9;
    options.world.view_size = 48;
    options.world.fps = 15;
    sim::collect(options, {});
    data::repack_as_v3(folder / "v21", folder / "other", {.episodes_per_file = 2});
    return folder / "other";
  }();
  return path;
}

std::string entry(const std::filesystem::path& path, double weight, const std::string& more = "") {
  return "{path: " + path.string() + ", weight: " + std::to_string(weight) + more + "}";
}

train::TrainConfig config(const std::filesystem::path& run_dir, std::vector<std::string> more = {}) {
  std::vector<std::string> all = {
      "steps=6", "vae.standardise=false", "dataset.path=\"\"", "dataset.validation_last=0",
      "dataset.mixture=[" + entry(e2e::dataset(), 3, ", validation_last: 1") + ", " +
          entry(other_dataset(), 1.5, ", name: other, validation_episodes: [2]") + "]"};
  all.insert(all.end(), more.begin(), more.end());
  return e2e::config(run_dir, all);
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

TEST(Mixture, ResolvedConfigReadsBackTheSame) {
  const std::string yaml = train::to_yaml(config("x"));
  EXPECT_EQ(train::to_yaml(train::parse_config(yaml, {}, "resolved")), yaml);
  expect_contains(yaml, "name: \"other\"");
}

TEST(Mixture, LossesOfTheSourcesMakeTheLossOfTheStep) {
  const TempDir folder;
  e2e::run(config(folder / "run", {"validate_every=6", "validation_samples=5"}));
  const std::vector<std::string> names = {"table", "other"};
  double total[2] = {0, 0};
  int64_t steps = 0;
  for (const train::MetricsRecord& record :
       train::read_metrics_log(folder / "run" / "metrics.jsonl")) {
    const bool is_step = record.text("kind") == "train";
    for (const std::string loss : {"loss", "dynamics_loss", "action_loss"}) {
      double sum = 0, count = 0;
      for (const std::string& name : names) {
        const double samples = record.number("samples/" + name).value_or(0);
        if (samples > 0) sum += samples * record.number(loss + "/" + name).value();
        count += samples;
      }
      EXPECT_EQ(count, is_step ? 4 : 6);  // whole micro-batches
      // One rounding to float32 for each sample's and micro-batch's loss, and of sums of squares.
      EXPECT_NEAR(sum / count, record.number(loss).value(), 1e-5 * std::abs(sum / count)) << loss;
    }
    if (!is_step) continue;
    ++steps;
    for (size_t i = 0; i < 2; ++i) {
      total[i] += record.number("samples/" + names[i]).value_or(0);
      const double share = i == 0 ? 2.0 / 3 : 1.0 / 3;
      EXPECT_LT(std::abs(total[i] - share * 4 * static_cast<double>(steps)), 1);
    }
  }
  EXPECT_EQ(steps, 6);
}

TEST(Mixture, ResumeAndMicroBatchesDrawTheSameSamples) {
  const TempDir folder;
  e2e::run(config(folder / "whole"));
  e2e::run(config(folder / "cut", {"save_every=4"}));
  std::filesystem::remove_all(folder / "cut/checkpoints/step_00000006");
  e2e::run(config(folder / "cut", {"save_every=4"}), true);
  EXPECT_EQ(e2e::losses(folder / "cut"), e2e::losses(folder / "whole"));
  for (const char* name : {"samples/other", "loss/other"}) {
    EXPECT_EQ(train::read_curve(folder / "cut", "train", name).values,
              train::read_curve(folder / "whole", "train", name).values);
  }
}

// What a rank loads is a part of the same stream, whatever their number.
TEST(Mixture, SharesHoldOnEveryNumberOfRanks) {
  const train::TrainConfig c = config("x");
  const train::RunData data = train::open_run_data(c, train::resolve_model(c));
  ASSERT_EQ(data.sources.size(), 2u);
  int64_t counts[2] = {0, 0}, places = 0;
  for (int64_t step = 1000; step < 1200; ++step) {
    for (int64_t index = 0; index < 4; ++index, ++places) {
      const int64_t source = data.train->draw(step, index).window.id.dataset;
      ++counts[source];
    }
  }
  // 4000 places before the first: both ends within one of the share.
  EXPECT_LT(std::abs(static_cast<double>(counts[0]) - 2.0 / 3 * static_cast<double>(places)), 2);
}

TEST(Mixture, WeightsByRows) {
  train::TrainConfig c = config("x", {"dataset.mixture_weights=rows"});
  const train::RunData data = train::open_run_data(c, train::resolve_model(c));
  double rows[2] = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    for (const int64_t position : data.sources[i].selection.split.train) {
      rows[i] += static_cast<double>(
          data.sources[i].dataset->episodes()[static_cast<size_t>(position)].length);
    }
  }
  EXPECT_NEAR(data.train->report().sources[0].share,
              3 * rows[0] / (3 * rows[0] + 1.5 * rows[1]), 1e-12);
}

TEST(Mixture, OneSourceIsEvaluatedWithItsOwnStatistics) {
  const TempDir folder;
  const train::TrainResult result = e2e::run(config(folder / "run", {"steps=1"}));
  train::EvalOptions options{.checkpoint = result.checkpoint, .windows = 1};
  options.sampler.steps = 2;
  expect_contains(error_of([&] { train::evaluate(options); }), "expected one of table, other");
  options.source = "other";
  EXPECT_TRUE(std::isfinite(train::evaluate(options).relative_error));
  expect_contains(read_text_file(std::filesystem::path(result.checkpoint) / "metadata.json"),
                  "\"sim_table/other\"");
}

TEST(Mixture, WhatDoesNotFitIsRefusedWithTheReason) {
  const auto refused = [](const std::string& mixture, std::vector<std::string> more = {}) {
    more.push_back("dataset.mixture=" + mixture);
    return error_of([&] {
      const train::TrainConfig c = config("x", more);
      train::open_run_data(c, train::resolve_model(c));
    });
  };
  const std::string a = entry(e2e::dataset(), 1);
  expect_contains(refused("[" + a + ", " + a + "]"), "two datasets of one name");
  expect_contains(refused("[" + entry(other_dataset(), 0) + "]"), "dataset.mixture[0].weight");
  expect_contains(refused("[" + a + ", {path: x, wieght: 2}]"), "Did you mean 'weight'");
  expect_contains(refused("[{weight: 2}]"), "no dataset is named");
  expect_contains(refused("[" + a + "]", {"dataset.path=x"}), "beside keys of a single dataset");
  const auto with = [&](const std::string& keys) {
    return refused("[" + a + ", " +
                   entry(other_dataset(), 1, ", embodiment: {preset: sim_table, " + keys + "}") +
                   "]");
  };
  expect_contains(with("action_horizon: 16"), "another action_horizon than the first dataset");
  expect_contains(with("view_width: 48"), "another tiled width than the first dataset");
  expect_contains(with("view_height: 16"), "another tiled height than the first dataset");
}

}  // namespace
}  // namespace wam
