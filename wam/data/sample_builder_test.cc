#include "wam/data/sample_builder.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <map>

#include "wam/data/fake_dataset.h"
#include "wam/data/prompt.h"
#include "wam/data/sampler.h"

namespace wam::data {
namespace {

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// Two views, blocks of 8 actions; `more` are further YAML lines.
Embodiment robot(const std::string& more = "") {
  return parse_embodiment(YAML::Load(R"(
embodiment_tag: fake
views: [front, wrist]
tiling: side_by_side
view_height: 8
view_width: 8
prompt_template: "A robot {i}"
state: [arm, "gripper[1]"]
action: [arm]
action_horizon: 8
)" + more));
}

// A dataset, a builder on it, and the window of one row.
struct Bench {
  explicit Bench(const std::string& more = "", FakeOptions options = {}, bool training = false)
      : dataset(std::make_shared<FakeDataset>(std::move(options))) {
    const Embodiment e = robot(more);
    builder = std::make_unique<SampleBuilder>(
        dataset, e, dataset_stats(*dataset, e),
        std::shared_ptr<const Tokenizer>(make_tokenizer({.kind = "bytes"})),
        BuilderOptions{.num_blocks = 2, .state_dim = 6, .action_dim = 4, .training = training});
    table = dataset->read_table(episode());
    reader = dataset->make_frame_reader();
  }
  const Episode& episode() const { return dataset->episodes()[0]; }
  Window window(int64_t first, SamplingMode mode = SamplingMode::kMultiAnchor) const {
    const WindowSampler sampler(window_rules(builder->embodiment(), mode, 2));
    Window window =
        *sampler.window(first, episode().length, builder->language_labels(episode(), table));
    window.id.first_anchor = first;
    return window;
  }
  Sample build(const Window& window, uint64_t index = 0) const {
    return builder->build(episode(), table, *reader, window, {1, 2, index});
  }

  std::shared_ptr<FakeDataset> dataset;
  std::unique_ptr<SampleBuilder> builder;
  EpisodeTable table;
  std::unique_ptr<FrameReader> reader;
};

float q99(double value) { return normalize({NormMode::kQ99, -1, 9}, static_cast<float>(value)); }

TEST(SampleBuilder, NumbersComeFromTheWindowsRows) {
  const Bench bench;
  const Sample sample = bench.build(bench.window(20));
  ASSERT_EQ(sample.state.shape(), (Shape{2, 6}));
  ASSERT_EQ(sample.action.shape(), (Shape{16, 4}));
  // Anchors 12 and 20; arm dims 0..2, gripper[1] is column dim 4.
  EXPECT_EQ(sample.state.as<float>()[0], q99(FakeDataset::value(10, 12, 0)));
  EXPECT_EQ(sample.state.as<float>()[6 + 3], q99(FakeDataset::value(10, 20, 4)));
  EXPECT_EQ(sample.state.as<float>()[4], 0);
  EXPECT_EQ(sample.action.as<float>()[0], q99(FakeDataset::value(10, 12, 50)));
  EXPECT_EQ(sample.action.as<float>()[15 * 4 + 2], q99(FakeDataset::value(10, 27, 52)));
  EXPECT_EQ(sample.action.as<float>()[3], 0);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(sample.action_mask.as<float>()[i], i % 4 < 3);
  EXPECT_EQ(sample.has_real_action, 1);
}

TEST(SampleBuilder, PicturesComeFromTheWindowsRows) {
  const Bench bench;
  const Window window = bench.window(20);
  const Sample sample = bench.build(window);
  ASSERT_EQ(sample.video.shape(), (Shape{17, 8, 16, 3}));
  const auto bytes = sample.video.as<uint8_t>();
  for (size_t t = 0; t < 17; ++t) {
    // Frames of one shade stay so; resizing and truncation may cost one step of it.
    const uint8_t left = FakeDataset::pixel(10, window.frame_rows[t], 0);
    const uint8_t right = FakeDataset::pixel(10, window.frame_rows[t], 1);
    EXPECT_NEAR(bytes[t * 384 + 3 * 5], left, 1);
    EXPECT_NEAR(bytes[t * 384 + 3 * 12], right, 1);
  }
}

TEST(SampleBuilder, PromptAndTokens) {
  const Bench bench;
  const Sample sample = bench.build(bench.window(20));
  EXPECT_EQ(sample.prompt, "A robot pick up the cup");
  EXPECT_EQ(sample.token_ids.size(), sample.prompt.size() + 1);
  EXPECT_EQ(sample.token_ids.back(), 1);
}

TEST(SampleBuilder, RelativeActionsStartAtTheBlocksState) {
  Bench bench;
  Embodiment e = robot("relative_action_keys: [arm]\n");
  NormStats stats = dataset_stats(*bench.dataset, robot());
  bench.builder = std::make_unique<SampleBuilder>(
      bench.dataset, e, stats, std::shared_ptr<const Tokenizer>(make_tokenizer({.kind = "bytes"})),
      BuilderOptions{.num_blocks = 2, .state_dim = 6, .action_dim = 4, .training = false});
  const Sample sample = bench.build(bench.window(20));
  const auto difference = [](int64_t row, int64_t anchor) {
    return static_cast<double>(static_cast<float>(FakeDataset::value(10, row, 51)) -
                               static_cast<float>(FakeDataset::value(10, anchor, 1)));
  };
  EXPECT_EQ(sample.action.as<float>()[4 * 3 + 1], q99(difference(15, 12)));
  EXPECT_EQ(sample.action.as<float>()[4 * 11 + 1], q99(difference(23, 20)));
}

TEST(SampleBuilder, FixedWindowMasksRepeats) {
  const Bench bench;
  const Window window = bench.window(50, SamplingMode::kFixedWindow);  // 10 rows are left
  const Sample sample = bench.build(window);
  const auto mask = sample.action_mask.as<float>();
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(mask[i * 4], i < 10);
  const auto video = sample.video_mask.as<float>();
  // Frames 0..9 are real: latent frames 0, 1..4, 5..8; the next one mixes.
  EXPECT_EQ(std::vector<float>(video.begin(), video.end()), (std::vector<float>{1, 1, 1, 0, 0}));
}

TEST(SampleBuilder, MultiAnchorMasksNothing) {
  const Bench bench;
  const Sample sample = bench.build(bench.window(20));
  for (float value : sample.video_mask.as<float>()) EXPECT_EQ(value, 1);
}

TEST(SampleBuilder, VideoAloneHasNoActions) {
  const Bench bench("");
  Embodiment e = robot();
  e.action.clear();
  e.has_real_action = false;
  const SampleBuilder builder(
      bench.dataset, e, dataset_stats(*bench.dataset, e),
      std::shared_ptr<const Tokenizer>(make_tokenizer({.kind = "bytes"})),
      {.num_blocks = 2, .state_dim = 6, .action_dim = 4, .training = false});
  const Sample sample =
      builder.build(bench.episode(), bench.table, *bench.reader, bench.window(20), {});
  EXPECT_EQ(sample.has_real_action, 0);
  for (float value : sample.action.as<float>()) EXPECT_EQ(value, 0);
  for (float value : sample.action_mask.as<float>()) EXPECT_EQ(value, 0);
}

TEST(Language, LabelsFollowTaskOrColumn) {
  const Bench by_task("", {.task_switch_row = 30});
  const auto tasks = by_task.builder->language_labels(by_task.episode(), by_task.table);
  EXPECT_EQ(tasks[29], 0);
  EXPECT_EQ(tasks[30], 1);
  const Bench by_text("language_keys: [note]\n", {.task_switch_row = 30});
  const auto notes = by_text.builder->language_labels(by_text.episode(), by_text.table);
  EXPECT_EQ(notes[0], notes[29]);
  EXPECT_NE(notes[29], notes[30]);
}

TEST(Language, TextOfTheDrawnRow) {
  const Bench bench("", {.task_switch_row = 30});
  EXPECT_EQ(bench.builder->instruction(bench.episode(), bench.table, 29, {}), "pick up the cup");
  EXPECT_EQ(bench.builder->instruction(bench.episode(), bench.table, 30, {}), "put it down");
}

TEST(Language, OneOfTheKeysIsDrawn) {
  const Bench bench("language_keys: [note, task_index]\n", {.task_switch_row = 30}, true);
  std::map<std::string, int> counts;
  for (uint64_t i = 0; i < 300; ++i) {
    ++counts[bench.builder->instruction(bench.episode(), bench.table, 5, {1, 2, i})];
  }
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts["Note the Cup"], 150, 6 * 8.7);
  // Blank ones are passed over.
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(bench.builder->instruction(bench.episode(), bench.table, 40, {1, 2, i}),
              "put it down");
  }
}

TEST(Language, EvaluationTakesTheFirstKey) {
  const Bench bench(
      "language_keys: [note, task_index]\nlanguage_dropout: 0.9\n"
      "default_instruction: do it\n");
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(bench.builder->instruction(bench.episode(), bench.table, 5, {1, 2, i}),
              "Note the Cup");
  }
}

TEST(Language, DropoutPutsTheDefaultInPlace) {
  const Bench bench("language_dropout: 0.25\ndefault_instruction: do it\n", {}, true);
  int dropped = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    dropped += bench.builder->instruction(bench.episode(), bench.table, 5, {1, 2, i}) == "do it";
  }
  EXPECT_NEAR(dropped, 100, 6 * 8.7);
}

TEST(Language, EmptyWithoutADefaultIsAnError) {
  const Bench bench("language_keys: [note]\n", {.task_switch_row = 30});
  const std::string error =
      error_of([&] { bench.builder->instruction(bench.episode(), bench.table, 40, {}); });
  EXPECT_TRUE(has(error, "episode 10, row 40")) << error;
  EXPECT_TRUE(has(error, "default_instruction")) << error;
}

TEST(BuilderErrors, NumbersThatAreNotFinite) {
  Bench bench;
  bench.dataset->poison_row = 25;
  bench.table = bench.dataset->read_table(bench.episode());
  const std::string error = error_of([&] { bench.build(bench.window(20)); });
  EXPECT_TRUE(has(error, "fake, episode 10, column action, row 25, dim 0")) << error;
  EXPECT_TRUE(has(error, "not a finite number")) << error;
}

TEST(BuilderErrors, TablesThatDoNotFitTheMeta) {
  Bench bench;
  const Window window = bench.window(20);
  bench.table.numeric.erase("action");
  EXPECT_TRUE(has(error_of([&] { bench.build(window); }), "no numeric column 'action'"));
  bench = Bench();
  bench.table.numeric["action"] = HostTensor::zeros(DType::kF64, {60, 2});
  EXPECT_TRUE(has(error_of([&] { bench.build(window); }), "narrower than the slice"));
  bench = Bench();
  bench.table.num_rows = 59;
  EXPECT_TRUE(has(error_of([&] { bench.build(window); }), "disagree on the episode's length"));
  bench = Bench();
  bench.table.numeric["task_index"].as<double>()[20] = 7;
  EXPECT_TRUE(
      has(error_of([&] { bench.builder->instruction(bench.episode(), bench.table, 20, {}); }),
          "not the number of a task"));
}

TEST(BuilderErrors, StatisticsOfAnotherWidth) {
  const Bench bench;
  NormStats stats = dataset_stats(*bench.dataset, robot());
  stats.state.at("arm").width = 7;
  const std::string error = error_of([&] {
    SampleBuilder(bench.dataset, robot(), stats,
                  std::shared_ptr<const Tokenizer>(make_tokenizer({.kind = "bytes"})),
                  {.num_blocks = 2, .state_dim = 9, .action_dim = 4});
  });
  EXPECT_TRUE(has(error, "another width")) << error;
}

TEST(SampleBuilder, TrainingDrawsDependOnTheKeyAlone) {
  const Bench bench("", {}, true);
  const Window window = bench.window(20);
  const auto bytes = [&](uint64_t index) {
    const Sample sample = bench.build(window, index);
    const auto span = sample.video.as<uint8_t>();
    return std::vector<uint8_t>(span.begin(), span.end());
  };
  EXPECT_EQ(bytes(0), bytes(0));
  EXPECT_NE(bytes(0), bytes(1));
}

}  // namespace
}  // namespace wam::data
