#include "wam/data/normalize.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "wam/data/fake_dataset.h"
#include "wam/data/norm_stats.h"
#include "wam/data/robot_codec.h"
#include "wam/data/slice_lookup.h"

namespace wam::data {
namespace {

constexpr float kEps = std::numeric_limits<float>::epsilon();

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

TEST(Normalize, Formulas) {
  const DimNorm q99{NormMode::kQ99, -1, 3}, flat{NormMode::kQ99, 2, 2};
  EXPECT_EQ(normalize(q99, 1), 0);
  EXPECT_EQ(normalize(q99, 2), 0.5f);
  EXPECT_EQ(normalize(q99, 9), 1);
  EXPECT_EQ(normalize(q99, -9), -1);
  EXPECT_EQ(normalize(flat, 0.25f), 0.25f);
  EXPECT_EQ(normalize(flat, 2), 1);
  EXPECT_EQ(normalize({NormMode::kMinMax, 2, 2}, 2), 0);
  EXPECT_EQ(normalize({NormMode::kMinMax, 0, 4}, 1), -0.5f);
  EXPECT_EQ(normalize({NormMode::kMeanStd, 1, 2}, 9), 4);
  EXPECT_EQ(normalize({NormMode::kMeanStd, 1, 0}, 9), 9);
  EXPECT_EQ(normalize({NormMode::kBinary, 0, 0}, 0.5f), 0);
  EXPECT_EQ(normalize({NormMode::kBinary, 0, 0}, 0.6f), 1);
  EXPECT_EQ(normalize({NormMode::kNone, 0, 0}, -7), -7);
}

TEST(Normalize, InverseUndoesInRange) {
  for (NormMode mode : {NormMode::kQ99, NormMode::kMinMax, NormMode::kMeanStd, NormMode::kNone}) {
    const DimNorm norm{mode, -1.5f, 4};
    for (float x = -1.5f; x <= 4; x += 0.125f) {
      // Values up to 4 pass six roundings.
      EXPECT_NEAR(denormalize(norm, normalize(norm, x)), x, 6 * 4 * kEps) << name(mode);
    }
  }
}

TEST(Normalize, InverseOfAnEmptyRangeIsItsConstant) {
  EXPECT_EQ(denormalize({NormMode::kQ99, 2, 2}, 0.3f), 2);
  EXPECT_EQ(denormalize({NormMode::kMinMax, 2, 2}, 0), 2);
  EXPECT_EQ(denormalize({NormMode::kMeanStd, 1, 0}, 5), 1);
}

Embodiment two_key_robot() {
  Embodiment e = parse_embodiment(YAML::Load(R"(
embodiment_tag: fake
views: [front]
view_height: 8
view_width: 8
prompt_template: "robot {i}"
state: [arm, "gripper[1]"]
action: [arm]
action_horizon: 8
)"));
  return e;
}

TEST(SliceLookup, ByKeyColumnAndRange) {
  const FakeDataset dataset;
  const FoundSlice gripper = find_slice(dataset, "state", {.key = "gripper", .ranges = {{1, -1}}});
  EXPECT_EQ(gripper.column, "observation.state");
  EXPECT_EQ(gripper.begin, 3);
  EXPECT_EQ(gripper.dims, std::vector<int64_t>{1});
  const FoundSlice column = find_slice(dataset, "action", {.key = "action"});
  EXPECT_EQ(column.dims, (std::vector<int64_t>{0, 1, 2}));
  const FoundSlice named = find_slice(
      dataset, "state", {.key = "wrist", .column = "observation.state", .ranges = {{4, 5}}});
  EXPECT_EQ(named.key, "wrist");
  EXPECT_EQ(named.dims, std::vector<int64_t>{4});
}

TEST(SliceLookup, ErrorsNameTheNearestKey) {
  const FakeDataset dataset;
  EXPECT_TRUE(has(error_of([&] { find_slice(dataset, "state", {.key = "griper"}); }), "'gripper'"));
  EXPECT_TRUE(has(error_of([&] {
                    find_slice(dataset, "state", {.key = "arm", .ranges = {{2, 5}}});
                  }),
                  "0:3"));
  EXPECT_TRUE(has(error_of([&] { find_camera(dataset, "top"); }), "observation.images.front"));
  EXPECT_TRUE(has(error_of([&] { find_language_column(dataset, "nota"); }), "'note'"));
}

TEST(SliceLookup, CamerasByEveryName) {
  const FakeDataset dataset;
  EXPECT_EQ(find_camera(dataset, "front"), "observation.images.front");
  EXPECT_EQ(find_camera(dataset, "wrist"), "observation.images.wrist");
  EXPECT_EQ(find_camera(dataset, "images.wrist"), "observation.images.wrist");
  EXPECT_EQ(find_camera(dataset, "observation.images.wrist"), "observation.images.wrist");
}

TEST(NormStats, CutFromDatasetColumns) {
  const NormStats stats = dataset_stats(FakeDataset(), two_key_robot());
  EXPECT_EQ(stats.state.at("arm").values.at("q01"), (std::vector<double>{-1, -1, -1}));
  EXPECT_EQ(stats.state.at("gripper").width, 2);
  EXPECT_EQ(stats.action.at("arm").values.at("q99").size(), 3u);
}

TEST(NormStats, MissingOnesAreNamedWithTheRemedy) {
  const FakeDataset dataset({.with_stats = false});
  const std::string error = error_of([&] { dataset_stats(dataset, two_key_robot()); });
  EXPECT_TRUE(has(error, "observation.state: q01, q99")) << error;
  EXPECT_TRUE(has(error, "wam stats")) << error;
  Embodiment relative = two_key_robot();
  relative.relative_action_keys = {"arm"};
  EXPECT_TRUE(has(error_of([&] { dataset_stats(FakeDataset(), relative); }), "relative arm"));
}

class MetadataFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            ("wam_metadata_" + std::to_string(getpid()) + ".json");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  std::string load_error(const std::string& text) {
    write(text);
    return error_of([&] { load_metadata_stats(path_, "fake"); });
  }
  std::filesystem::path path_;
};

TEST_F(MetadataFile, WrittenAndReadBack) {
  const NormStats stats = dataset_stats(FakeDataset(), two_key_robot());
  write(metadata_json(two_key_robot(), stats, {{"front", {8, 8, 10}}}));
  const NormStats back = load_metadata_stats(path_, "fake");
  EXPECT_EQ(back.state.at("arm").values, stats.state.at("arm").values);
  EXPECT_EQ(back.action.at("arm").width, 3);
}

TEST_F(MetadataFile, ComesBeforeTheDatasetsOwn) {
  NormStats stats = dataset_stats(FakeDataset(), two_key_robot());
  stats.state.at("arm").values.at("q01")[0] = -7;
  write(metadata_json(two_key_robot(), stats, {}));
  const FakeDataset dataset;
  const auto first = [&](const std::filesystem::path& path) {
    return find_norm_stats(path, dataset, two_key_robot()).state.at("arm").values.at("q01")[0];
  };
  EXPECT_EQ(first(path_), -7);
  EXPECT_EQ(first({}), -1);
}

TEST_F(MetadataFile, RowsPerStepSurvive) {
  NormStats stats;
  stats.action["arm"] = {3, {{"q01", std::vector<double>(24, 1)}}};
  write(metadata_json(two_key_robot(), stats, {}));
  const NormStats back = load_metadata_stats(path_, "fake");
  EXPECT_EQ(back.action.at("arm").width, 3);
  EXPECT_EQ(back.action.at("arm").values.at("q01").size(), 24u);
}

TEST_F(MetadataFile, BadFilesAreRefused) {
  EXPECT_TRUE(has(error_of([&] { load_metadata_stats("/nonexistent/x.json", "fake"); }), "x.json"));
  EXPECT_TRUE(has(load_error("{"), "not a JSON object"));
  EXPECT_TRUE(has(load_error(R"({"other": {}})"), "other"));
  EXPECT_TRUE(has(load_error(R"({"fake": {}})"), "statistics"));
  EXPECT_TRUE(has(load_error(R"({"fake": {"statistics": {"state": {"a": {"q01": ["x"]}}}}})"),
                  "not a number"));
  EXPECT_TRUE(
      has(load_error(R"({"fake": {"statistics": {"state": {"a": {"q01": []}}}}})"), "a list"));
  EXPECT_TRUE(has(load_error(R"({"fake": {"statistics": {"state": {"a": {"q01": [[1],[1,2]]}}}}})"),
                  "differ in length"));
  EXPECT_TRUE(has(load_error(R"({"fake": {"statistics": {"state": {"a": 5}}}})"), "not an object"));
}

TEST(RobotCodec, EncodesAndPads) {
  const RobotCodec codec(two_key_robot(), dataset_stats(FakeDataset(), two_key_robot()), 6, 4);
  ASSERT_EQ(codec.state_width(), 4);
  ASSERT_EQ(codec.action_width(), 3);
  EXPECT_EQ(codec.state_names()[3], "gripper[1]");
  const std::vector<double> raw = {-1, 4, 9, 1.5};
  std::vector<float> out(6, 7);
  codec.encode_state(raw, out);
  EXPECT_EQ(out, (std::vector<float>{-1, 0, 1, -0.5f, 0, 0}));
}

TEST(RobotCodec, RelativeActionsComeBack) {
  Embodiment e = two_key_robot();
  e.relative_action_keys = {"arm"};
  NormStats stats = dataset_stats(FakeDataset(), two_key_robot());
  const RobotCodec codec(e, stats, 6, 4);
  const std::vector<double> state = {0.5, 0.75, 1, 0};
  std::vector<double> raw, back(24);
  for (int i = 0; i < 24; ++i) raw.push_back(0.125 * i);  // differences from -0.75: not clamped
  std::vector<float> encoded(32);
  codec.encode_actions(raw, state, encoded);
  EXPECT_EQ(encoded[3], 0);  // padding
  EXPECT_EQ(encoded[0], normalize({NormMode::kQ99, -1, 9}, -0.5f));
  codec.decode_actions(encoded, state, back);
  for (int i = 0; i < 24; ++i) EXPECT_NEAR(back[i], raw[i], 6 * 10 * kEps) << i;
}

TEST(RobotCodec, StatisticsPerRowOfTheBlock) {
  Embodiment e = two_key_robot();
  NormStats stats = dataset_stats(FakeDataset(), e);
  std::vector<double> low(24), high(24);
  for (size_t i = 0; i < 24; ++i) high[i] = 1 + static_cast<double>(i / 3);
  stats.action["arm"].values = {{"q01", low}, {"q99", high}};
  const RobotCodec codec(e, stats, 6, 4);
  std::vector<float> encoded(32);
  codec.encode_actions(std::vector<double>(24, 1), std::vector<double>(4), encoded);
  EXPECT_EQ(encoded[0], 1);
  EXPECT_EQ(encoded[4], 0);
  EXPECT_EQ(encoded[12], -0.5f);
  // Asked for, they must be there.
  e.action[0].per_horizon = true;
  EXPECT_NO_THROW(RobotCodec(e, stats, 6, 4));
  const NormStats whole = dataset_stats(FakeDataset(), two_key_robot());
  EXPECT_TRUE(has(error_of([&] { RobotCodec(e, whole, 6, 4); }), "not per row of a block"));
}

TEST(RobotCodec, RefusesWhatDoesNotFit) {
  const NormStats stats = dataset_stats(FakeDataset(), two_key_robot());
  EXPECT_TRUE(has(error_of([&] { RobotCodec(two_key_robot(), stats, 3, 4); }), "state_dim = 3"));
  EXPECT_TRUE(has(error_of([&] { RobotCodec(two_key_robot(), stats, 6, 2); }), "action_dim = 2"));
  NormStats lacking = stats;
  lacking.state.erase("gripper");
  lacking.action.at("arm").values.erase("q99");
  const std::string error = error_of([&] { RobotCodec(two_key_robot(), lacking, 6, 4); });
  EXPECT_TRUE(has(error, "state.gripper, action.arm.q99")) << error;
  NormStats wrong = stats;
  wrong.action.at("arm").values.at("q99").push_back(1);
  EXPECT_TRUE(has(error_of([&] { RobotCodec(two_key_robot(), wrong, 6, 4); }), "wrong length"));
}

}  // namespace
}  // namespace wam::data
