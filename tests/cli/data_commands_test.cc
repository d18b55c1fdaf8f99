// wam data info, show and diff, and what wam train makes of faults, as a user meets them.
#include <gtest/gtest.h>

#include "tests/cli/small_robot.h"
#include "wam/base/files.h"
#include "wam/data/lerobot_testing.h"

namespace wam::cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

RunResult run_in(const SmallRobot& robot, const std::vector<std::string>& arguments) {
  return run_wam(arguments, {.folder = robot.folder()});
}

TEST(DataInfo, ListsWhatIsThere) {
  const SmallRobot robot({24, 17});
  const RunResult result = run_in(robot, {"data", "info", "dataset", "--episodes", "--statistics"});
  EXPECT_TRUE(is_success(result));
  for (const char* part :
       {"dataset: LeRobot v2.1, robot test", "2 episodes, 41 rows", "17 to 24 rows",
        "observation.state                    float32            [4]", "32x32 h264 yuv420p",
        "state.gripper", "observation.state[3:4]", "annotation.task", "push", "action[2]"}) {
    EXPECT_TRUE(says(result.out, part)) << part << "\n" << result.out;
  }
  EXPECT_TRUE(is_refusal(run_in(robot, {"data", "info", "nowhere"}), 3, {"nowhere"}));
}

TEST(DataDiff, SaysWhatDiffers) {
  const SmallRobot robot({24, 17});
  fs::copy(robot.dataset(), robot.folder() / "other", fs::copy_options::recursive);
  const RunResult same =
      run_in(robot, {"data", "diff", "dataset", "other", "--values", "--pictures"});
  EXPECT_TRUE(is_success(same));
  EXPECT_TRUE(says(same.out, "no differences")) << same.out;

  data::edit_json(robot.folder() / "other/meta/info.json", [](json& i) { i["fps"] = 30; });
  data::edit_json(robot.folder() / "other/meta/stats.json",
                  [](json& s) { s["action"]["mean"][1] = 9; });
  data::edit_table(robot.folder() / "other", robot.options(), 1, [](auto& columns) {
    data::find_numbers(columns, "action").template as<float>()[3 * 5] += 1;
  });
  const std::string video = robot.options().cameras[0];
  fs::copy_file(data::test_video_path(robot.dataset(), 0, video),
                data::test_video_path(robot.folder() / "other", 1, video),
                fs::copy_options::overwrite_existing);
  const RunResult result = run_in(robot, {"data", "diff", "dataset", "other", "--pictures"});
  EXPECT_EQ(result.exit_code, 1);
  for (const char* part :
       {"frames/s: 10 | 30", "statistics of action[1] mean", "| 9\n",
        "episode 1, column 'action': row 5 | other numbers", "episode 1, camera"}) {
    EXPECT_TRUE(says(result.out, part)) << part << "\n" << result.out;
  }
  EXPECT_FALSE(says(result.out, "episode 0,")) << result.out;
}

TEST(DataDiff, ComparesVersions) {
  const SmallRobot robot({24, 17});
  ASSERT_TRUE(is_success(run_in(robot, {"data", "repack", "dataset", "v3"})));
  const RunResult result = run_in(robot, {"data", "diff", "dataset", "v3", "--pictures"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(says(result.out, "version: v2.1 | v3.0\n")) << result.out;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2) << result.out;
}

TEST(DataShow, WritesAPage) {
  const SmallRobot robot({24, 17});
  EXPECT_TRUE(is_success(run_in(robot, {"data", "show", "dataset", "--episode", "1"})));
  const std::string raw = read_text_file(robot.folder() / "dataset.html");
  for (const char* part :
       {"Episode 1: 17 rows", "state arm", "action arm", "data:image/png;base64,"}) {
    EXPECT_TRUE(says(raw, part)) << part;
  }
  EXPECT_TRUE(
      is_success(run_in(robot, {"data", "show", "dataset", "--config", "run.yaml", "--samples", "2",
                                "--first", "3", "--out", "samples.html"})));
  const std::string page = read_text_file(robot.folder() / "samples.html");
  for (const char* part :
       {"Sample ", "tokens with the end of sequence", "after crop, jitter and tiling",
        "actions as the model sees them", "states as the model sees them"}) {
    EXPECT_TRUE(says(page, part)) << part;
  }
  EXPECT_FALSE(says(page, "http://") || says(page, "https://"));
  EXPECT_TRUE(
      is_refusal(run_in(robot, {"data", "show", "dataset", "--episode", "7"}), 2,
                 {"the dataset has no such episode, got 7, expected one of 2 episodes, 0 to 1"}));
  EXPECT_TRUE(
      is_refusal(run_in(robot, {"data", "show", "dataset", "seed=3"}), 2, {"without a config"}));
}

TEST(Train, TreatsFaultsAsAsked) {
  const SmallRobot robot({24, 24, 24});
  data::edit_table(robot.dataset(), robot.options(), 1, [](auto& columns) {
    data::find_numbers(columns, "timestamp").template as<float>()[5] += 0.03F;
  });
  const RunResult warned = robot.train();
  EXPECT_TRUE(is_success(warned));
  EXPECT_TRUE(says(warned.err, "warning [timestamp-jitter]")) << warned.err;
  EXPECT_FALSE(says(warned.err, "left out")) << warned.err;
  EXPECT_TRUE(is_refusal(robot.train({"dataset.faults=refuse", "run_dir=b"}), 3,
                         {"warning [timestamp-jitter]", "episode_000001.parquet episode 1 row 5"}));
  const RunResult excluded = robot.train({"dataset.faults=exclude", "run_dir=c"});
  EXPECT_TRUE(is_success(excluded));
  EXPECT_TRUE(says(excluded.err, "episodes left out for their faults, as dataset.faults asks: 1"))
      << excluded.err;
  const RunResult off = robot.train({"dataset.faults=off", "run_dir=d"});
  EXPECT_TRUE(is_success(off));
  EXPECT_FALSE(says(off.err, "timestamp-jitter")) << off.err;
  EXPECT_TRUE(is_refusal(robot.train({"dataset.faults=maybe", "run_dir=e"}), 2,
                         {"dataset.faults", "off, auto, warn, exclude or refuse"}));
}

}  // namespace
}  // namespace wam::cli_test
