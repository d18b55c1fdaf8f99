#include "wam/data/embodiment_guess.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/data/lerobot_testing.h"
#include "wam/data/video_testing.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool says(const EmbodimentGuess& guess, const std::string& part) {
  return std::any_of(guess.notes.begin(), guess.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

std::vector<std::string> keys_of(const std::vector<SliceSpec>& slices) {
  std::vector<std::string> keys;
  for (const SliceSpec& slice : slices) keys.push_back(slice.key);
  return keys;
}

using Texts = std::vector<std::string>;

TEST(EmbodimentGuess, OfATestSet) {
  const TempDir temp;
  const TestDatasetOptions options{.lengths = {60, 70, 50}, .height = 96, .width = 128};
  write_test_dataset(temp / "set", options);
  edit_table(temp / "set", options, 0, [](auto& columns) {
    auto values = find_numbers(columns, "observation.state").template as<float>();
    for (size_t row = 0; row < 60; ++row) values[4 * row + 3] = row < 30 ? 0.0f : 1.0f;
  });
  const auto dataset = open_dataset(temp / "set");
  const EmbodimentGuess guess = guess_embodiment(*dataset);
  const Embodiment& e = guess.embodiment;
  EXPECT_EQ(e.tag, "test");
  EXPECT_EQ(e.views, (Texts{"top", "wrist"}));
  EXPECT_EQ(e.tiling, Tiling::kSideBySide);
  EXPECT_EQ(e.tiled_height() % 32, 0);
  EXPECT_EQ(e.tiled_width() % 32, 0);
  EXPECT_EQ(keys_of(e.state), (Texts{"arm", "gripper"}));
  EXPECT_EQ(e.state[0].mode, NormMode::kQ99);
  EXPECT_EQ(e.state[1].mode, NormMode::kBinary);
  EXPECT_TRUE(says(guess, "binary, as only 0 and 1 occur: gripper"));
  // 1.6 s at 10 Hz are 16 rows, four of which do not fit 60.
  EXPECT_EQ(e.action_horizon, 8);
  EXPECT_TRUE(says(guess, "so that 4 blocks fit an episode of 60 rows"));
  EXPECT_TRUE(says(guess, "is the task of task_index"));
  EXPECT_NE(e.prompt_template.find("the right view shows the wrist camera"), std::string::npos);
  // The file is an embodiment block, and describes the same robot.
  const YAML::Node file = YAML::Load(guess_file(guess, "set"));
  EXPECT_EQ(to_yaml(parse_embodiment(file["embodiment"])), to_yaml(e));
}

TEST(EmbodimentGuess, WhatIsNotThereIsLeftOutAloud) {
  const TempDir temp;
  write_test_dataset(temp / "set",
                     {.lengths = {20, 20}, .has_modality = false, .has_stats = false});
  fs::remove_all(temp / "set/videos/chunk-000/observation.images.wrist");
  fs::remove(temp / "set/meta/tasks.jsonl");
  const auto dataset = open_dataset(temp / "set");
  const EmbodimentGuess guess = guess_embodiment(*dataset, {.num_blocks = 2});
  EXPECT_EQ(guess.embodiment.views, Texts{"top"});
  EXPECT_TRUE(says(guess, "no picture of the first episode can be read: wrist"));
  EXPECT_TRUE(says(guess, "run `wam stats` with this file"));
  EXPECT_TRUE(says(guess, "the dataset has no instructions"));
  edit_json(temp / "set/meta/info.json", [](json& info) {
    info["features"].erase("observation.images.top");
    info["features"].erase("observation.images.wrist");
  });
  EXPECT_THROW(guess_embodiment(*open_dataset(temp / "set")), DataError);
}

TEST(EmbodimentGuess, OfRealMeta) {
  if (real_data_folder().empty()) GTEST_SKIP() << "WAM_DATA_DIR names no folder";
  const fs::path sets = real_data_folder() / "groot_demo_meta/demo_data";
  if (!fs::exists(sets)) GTEST_SKIP() << sets << " is absent";
  const EmbodimentGuess droid = guess_embodiment(*open_dataset(sets / "droid_sample"));
  EXPECT_EQ(droid.embodiment.tag, "droid");
  EXPECT_EQ(droid.embodiment.views, (Texts{"exterior_1_left", "wrist_left"}));
  EXPECT_EQ(droid.embodiment.action_horizon, 24);
  EXPECT_EQ(keys_of(droid.embodiment.action),
            (Texts{"eef_9d", "gripper_position", "joint_position"}));
  EXPECT_TRUE(says(droid, "the meta alone was used"));
  const EmbodimentGuess libero = guess_embodiment(*open_dataset(sets / "libero_demo"));
  EXPECT_EQ(libero.embodiment.picture.view_height, 256);
  EXPECT_EQ(libero.embodiment.action_horizon, 32);
  const EmbodimentGuess gr1 =
      guess_embodiment(*open_dataset(real_data_folder() / "gr1_picknplace_v20"));
  EXPECT_EQ(gr1.embodiment.views, Texts{"ego_view"});
  EXPECT_EQ(gr1.embodiment.action.size(), 8u);
  EXPECT_EQ(gr1.embodiment.language_keys, Texts{"human.action.task_description"});
}

}  // namespace
}  // namespace wam::data
