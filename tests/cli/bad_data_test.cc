// Datasets that are wrong: training and statistics stop with one line that names file, value, rule
// and remedy, exit code 3, and leave no half-written file behind.
#include <gtest/gtest.h>

#include <functional>

#include "tests/cli/small_robot.h"
#include "wam/data/video_testing.h"

namespace wam::cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Spoilt {
  const char* name;
  std::function<void(const SmallRobot&)> spoil;
  std::vector<std::string> parts;
  std::vector<std::string> arguments = {};  // of wam train
  int exit_code = 3;
};

void PrintTo(const Spoilt& spoilt, std::ostream* out) { *out << spoilt.name; }
std::string case_name(const ::testing::TestParamInfo<Spoilt>& info) { return info.param.name; }

void edit_info(const SmallRobot& robot, const std::function<void(json&)>& edit) {
  data::edit_json(robot.dataset() / "meta/info.json", edit);
}

void spoil_state(const SmallRobot& robot, float value) {
  data::edit_table(robot.dataset(), robot.options(), 0, [value](auto& columns) {
    data::find_numbers(columns, "observation.state").template as<float>()[4 * 7 + 1] = value;
  });
}

void remove_column(const SmallRobot& robot, const std::string& name) {
  data::edit_table(robot.dataset(), robot.options(), 0, [&](auto& columns) {
    std::erase_if(columns, [&](const auto& column) { return column.name == name; });
  });
}

void drop_statistic(const SmallRobot& robot, const char* name) {
  data::edit_json(robot.dataset() / "meta/stats.json",
                  [name](json& stats) { stats["observation.state"].erase(name); });
}

// metadata.json of wam stats, without one statistic of one key.
void write_metadata_without(const SmallRobot& robot, const char* name) {
  ASSERT_TRUE(is_success(robot.stats()));
  data::edit_json(robot.folder() / "metadata.json", [name](json& metadata) {
    metadata["test"]["statistics"]["action"]["arm"].erase(name);
  });
}

class Tables : public ::testing::TestWithParam<Spoilt> {};

TEST_P(Tables, StopStatisticsInOneLine) {
  const SmallRobot robot;
  GetParam().spoil(robot);
  EXPECT_TRUE(is_refusal(robot.stats(), GetParam().exit_code, GetParam().parts));
  EXPECT_FALSE(fs::exists(robot.folder() / "metadata.json"));
}

TEST_P(Tables, StopTrainingInOneLine) {
  const SmallRobot robot;
  GetParam().spoil(robot);
  EXPECT_TRUE(is_refusal(robot.train(), GetParam().exit_code, GetParam().parts));
}

INSTANTIATE_TEST_SUITE_P(
    BadData, Tables,
    ::testing::Values(
        Spoilt{"NoDataset",
               [](const SmallRobot& r) { fs::remove_all(r.dataset()); },
               {"[dataset", "missing", "meta/info.json", "Check the path"}},
        Spoilt{"NoInfo",
               [](const SmallRobot& r) { fs::remove(r.dataset() / "meta/info.json"); },
               {"[dataset", "info.json"}},
        Spoilt{"UnknownVersion",
               [](const SmallRobot& r) {
                 edit_info(r, [](json& i) { i["codebase_version"] = "v9.7"; });
               },
               {"info.json", "'v9.7'", "v2.0", "v3.0"}},
        Spoilt{"V3WithoutEpisodes",
               [](const SmallRobot& r) {
                 edit_info(r, [](json& i) { i["codebase_version"] = "v3.0"; });
               },
               {"meta/episodes", "there is no list of episodes"}},
        Spoilt{
            "NoEpisodes",
            [](const SmallRobot& r) { data::write_text(r.dataset() / "meta/episodes.jsonl", ""); },
            {"[dataset", "episode"}},
        Spoilt{"InfoCutShort",
               [](const SmallRobot& r) { cut_file(r.dataset() / "meta/info.json", 0.5); },
               {"info.json", "JSON"}},
        Spoilt{"TableMissing",
               [](const SmallRobot& r) { fs::remove(r.table()); },
               {"episode_000000.parquet", "No such file"}},
        Spoilt{"TableEmpty",
               [](const SmallRobot& r) { data::write_text(r.table(), ""); },
               {"episode_000000.parquet", "parquet"}},
        Spoilt{"TableCutShort",
               [](const SmallRobot& r) { cut_file(r.table(), 0.7); },
               {"episode_000000.parquet", "parquet"}},
        Spoilt{"TableIsText",
               [](const SmallRobot& r) { data::write_text(r.table(), std::string(500, 'x')); },
               {"episode_000000.parquet", "parquet"}},
        Spoilt{"ColumnMissing",
               [](const SmallRobot& r) { remove_column(r, "action"); },
               {"episode_000000.parquet", "'action'"}},
        Spoilt{"StateNotANumber",
               [](const SmallRobot& r) { spoil_state(r, NAN); },
               {"episode_000000.parquet", "observation.state", "row 7", "nan"}},
        Spoilt{"StateInfinite",
               [](const SmallRobot& r) { spoil_state(r, INFINITY); },
               {"episode_000000.parquet", "observation.state", "row 7", "inf"}},
        Spoilt{"PathLeavesTheDataset",
               [](const SmallRobot& r) {
                 edit_info(r, [](json& i) { i["data_path"] = "../../x.parquet"; });
               },
               {"info.json", "../../x.parquet"}}),
    case_name);

class Pictures : public ::testing::TestWithParam<Spoilt> {};

TEST_P(Pictures, StopTrainingInOneLine) {
  const SmallRobot robot;
  GetParam().spoil(robot);
  const RunResult result = robot.train(GetParam().arguments);
  EXPECT_TRUE(is_refusal(result, GetParam().exit_code, GetParam().parts));
}

INSTANTIATE_TEST_SUITE_P(
    BadData, Pictures,
    ::testing::Values(
        Spoilt{"VideoMissing",
               [](const SmallRobot& r) { fs::remove(r.video()); },
               {"episode_000000.mp4", "No such file"}},
        Spoilt{"VideoOfZeroBytes",
               [](const SmallRobot& r) { data::write_text(r.video(), ""); },
               {"episode_000000.mp4", "0 bytes"}},
        Spoilt{"VideoCutShort",
               [](const SmallRobot& r) { cut_file(r.video(), 0.6); },
               {"episode_000000.mp4", "cut"}},
        Spoilt{"VideoIsText",
               [](const SmallRobot& r) { data::write_text(r.video(), std::string(900, 'x')); },
               {"episode_000000.mp4"}},
        Spoilt{"FewerFramesThanRows",
               [](const SmallRobot& r) { data::write_test_video(r.video(), 32, 32, 10, 10, {}); },
               {"episode_000000.mp4", "frame", "10"}},
        Spoilt{"OtherSizeThanInfo",
               [](const SmallRobot& r) { data::write_test_video(r.video(), 48, 32, 24, 10, {}); },
               {"episode_000000.mp4", "48", "32"}},
        Spoilt{"NoSuchView",
               [](const SmallRobot&) {},
               {"'wrist'", "top"},
               {"dataset.embodiment.views=[wrist]"}},
        Spoilt{"NoSuchSlice",
               [](const SmallRobot&) {},
               {"'leg'", "arm"},
               {"dataset.embodiment.state=[leg]"}},
        Spoilt{"RangeBeyondSlice",
               [](const SmallRobot&) {},
               {"arm", "3"},
               {"dataset.embodiment.state=[\"arm[0:9]\"]"},
               2}),
    case_name);

class Statistics : public ::testing::TestWithParam<Spoilt> {};

TEST_P(Statistics, StopTrainingInOneLine) {
  const SmallRobot robot;
  GetParam().spoil(robot);
  const RunResult result = robot.train(GetParam().arguments);
  EXPECT_TRUE(is_refusal(result, GetParam().exit_code, GetParam().parts));
}

const std::vector<std::string> kOwnFile = {"dataset.statistics=metadata.json"};

INSTANTIATE_TEST_SUITE_P(
    BadData, Statistics,
    ::testing::Values(
        Spoilt{"NoneAtAll",
               [](const SmallRobot& r) {
                 fs::remove(r.dataset() / "meta/stats.json");
                 fs::remove(r.dataset() / "meta/episodes_stats.jsonl");
               },
               {"meta", "missing", "q01", "wam stats"}},
        Spoilt{"KeyMissing",
               [](const SmallRobot& r) { drop_statistic(r, "q99"); },
               {"meta", "observation.state", "q99", "wam stats"}},
        Spoilt{"NotAList",
               [](const SmallRobot& r) {
                 data::edit_json(r.dataset() / "meta/stats.json",
                                 [](json& s) { s["observation.state"]["q99"] = "high"; });
               },
               {"stats.json", "q99"}},
        Spoilt{"TooFewNumbers",
               [](const SmallRobot& r) {
                 data::edit_json(r.dataset() / "meta/stats.json",
                                 [](json& s) { s["observation.state"]["q99"] = {1.0}; });
               },
               {"observation.state", "q99"}},
        Spoilt{
            "FileMissing", [](const SmallRobot&) {}, {"[metadata.json]", "No such file"}, kOwnFile},
        Spoilt{"FileCutShort",
               [](const SmallRobot& r) {
                 write_metadata_without(r, "max");
                 cut_file(r.folder() / "metadata.json", 0.5);
               },
               {"[metadata.json]", "JSON", "wam stats"},
               kOwnFile},
        Spoilt{"FileLacksAKey",
               [](const SmallRobot& r) { write_metadata_without(r, "q99"); },
               {"metadata.json", "arm", "q99"},
               kOwnFile},
        Spoilt{"FileOfAnotherRobot",
               [](const SmallRobot& r) {
                 write_metadata_without(r, "max");
                 data::edit_json(r.folder() / "metadata.json", [](json& m) {
                   m["other"] = m["test"];
                   m.erase("test");
                 });
               },
               {"[metadata.json]", "'test'", "other"},
               kOwnFile}),
    case_name);

TEST(ShortEpisodes, AreCountedAndLeftOut) {
  const SmallRobot robot({24, 5, 24});
  const RunResult result = robot.train();
  EXPECT_TRUE(is_success(result));
  EXPECT_NE(result.err.find("1 (5 rows, 17 needed)"), std::string::npos) << result.err;
}

TEST(ShortEpisodes, AreAnErrorIfNoneIsLeft) {
  const SmallRobot robot({5, 6});
  EXPECT_TRUE(is_refusal(robot.train(), 3, {"window"}));
}

TEST(Validate, ReportsEveryFaultAndEndsWithThree) {
  const SmallRobot robot({24, 20});
  cut_file(robot.video(1), 0.6);
  spoil_state(robot, NAN);
  const RunResult result = run_wam({"validate", "dataset"}, {.folder = robot.folder()});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"error: [video-cut]", "episode 1", "error: [value-nonfinite]", "row 7", "2 errors"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
}

TEST(Validate, SaysWhatIsMissing) {
  const RunResult result = run_wam({"validate", "/nowhere/at/all"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.out.find("[dataset-missing]"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace wam::cli_test
