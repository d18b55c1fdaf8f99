// What the commands do when all is well, from the binary's arguments to the files it writes.
#include <gtest/gtest.h>

#include "tests/cli/small_robot.h"
#include "wam/data/norm_stats.h"
#include "wam/data/stats_file.h"

namespace wam::cli_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool says(const RunResult& result, const std::string& part) {
  return result.out.find(part) != std::string::npos;
}

json read_json(const fs::path& path) { return json::parse(read_text_file(path)); }

TEST(Help, IsGivenForTheProgramAndEveryCommand) {
  const RunResult help = run_wam({"--help"});
  EXPECT_TRUE(is_success(help));
  for (const char* command : {"ops", "plan", "stats", "train", "validate", "version"}) {
    EXPECT_TRUE(says(help, command)) << help.out;
    EXPECT_TRUE(is_success(run_wam({command, "--help"})));
  }
  EXPECT_TRUE(is_success(run_wam({"sim", "collect", "--help"})));
}

TEST(Version, NamesEveryLibrary) {
  const RunResult result = run_wam({"version"});
  EXPECT_TRUE(is_success(result));
  for (const char* part :
       {"wam ",          "compiler ",     "oneDNN",   "OpenMP", "CUDA",    "MPI",   "Arrow",
        "FFmpeg",        "SentencePiece", "utf8proc", "libpng", "libjpeg", "zlib",  "yaml-cpp",
        "nlohmann-json",  "fmt",      "spdlog", "CLI11",   "xxHash"}) {
    EXPECT_TRUE(says(result, part)) << part << "\n" << result.out;
  }
}

TEST(Output, ThatCannotBeWrittenIsAnError) {
  const RunResult result = run_wam({"ops"}, {.output = "/dev/full"});
  EXPECT_TRUE(is_refusal(result, 3, {"No space left on device"}));
}

TEST(Stats, WriteMetadataThatTrainingReads) {
  const SmallRobot robot;
  const RunResult result = robot.stats();
  EXPECT_TRUE(is_success(result));
  EXPECT_TRUE(says(result, "state.gripper[0]")) << result.out;
  EXPECT_TRUE(says(result, "embodiment tag 'test'")) << result.out;  // the robot's type
  const data::NormStats stats = data::load_metadata_stats(robot.folder() / "metadata.json", "test");
  EXPECT_EQ(stats.state.at("arm").width, 3);
  EXPECT_EQ(stats.action.at("arm").values.at("q99").size(), 3u);
  const json camera =
      read_json(robot.folder() / "metadata.json")["test"]["modalities"]["video"]["top"];
  EXPECT_EQ(camera["resolution"], json({32, 32}));
  fs::remove(robot.dataset() / "meta/stats.json");
  EXPECT_TRUE(is_success(robot.train({"dataset.statistics=metadata.json"})));
}

TEST(Stats, AgreeWithTheDatasetsOwn) {
  const SmallRobot robot({24, 17});
  ASSERT_TRUE(is_success(robot.stats()));
  const data::NormStats stats = data::load_metadata_stats(robot.folder() / "metadata.json", "test");
  const data::StatsByColumn own = data::read_dataset_stats(robot.dataset());
  for (const char* name : {"min", "max", "mean", "std"}) {
    for (size_t i = 0; i < 3; ++i) {
      // The fixture sums in another order, and its std by a difference of squares of order 1.
      EXPECT_NEAR(stats.action.at("arm").values.at(name)[i], own.at("action").at(name)[i], 1e-7)
          << name << i;
    }
  }
}

TEST(Stats, OfAnEmbodimentAreUnderItsTagAndKeys) {
  const SmallRobot robot;
  const RunResult result =
      run_wam({"stats", "dataset", "--embodiment", "run.yaml", "--out", "m.json"},
              {.folder = robot.folder()});
  EXPECT_TRUE(is_success(result));
  const json statistics = read_json(robot.folder() / "m.json")["test"]["statistics"];
  EXPECT_TRUE(statistics["state"].contains("arm"));
  EXPECT_FALSE(statistics["state"].contains("gripper"));  // not among the run's slices
}

TEST(Stats, OfRelativeActionsGoWhereDatasetsKeepThem) {
  const SmallRobot robot;
  const RunResult result =
      run_wam({"stats", "dataset", "--relative", "arm", "--horizon", "8", "--out", "m.json",
               "--relative-out", "dataset/meta/relative_stats_dreamzero.json"},
              {.folder = robot.folder()});
  EXPECT_TRUE(is_success(result));
  const data::StatsByColumn relative = data::read_relative_stats(robot.dataset());
  EXPECT_EQ(relative.at("arm").at("q01").size(), 3u);
  const json action = read_json(robot.folder() / "m.json")["test"]["modalities"]["action"]["arm"];
  EXPECT_EQ(action["absolute"], json(false));
  EXPECT_TRUE(is_success(robot.train({"dataset.embodiment.relative_action_keys=[arm]"})));
}

TEST(Stats, OfEachStepHaveARowForEach) {
  const SmallRobot robot;
  const RunResult result = run_wam(
      {"stats", "dataset", "--relative", "arm", "--horizon", "8", "--per-step", "--out", "m.json"},
      {.folder = robot.folder()});
  EXPECT_TRUE(is_success(result));
  EXPECT_TRUE(says(result, "step 7")) << result.out;
  const json action = read_json(robot.folder() / "m.json")["test"]["statistics"]["action"]["arm"];
  EXPECT_EQ(action["q01"].size(), 8u);
}

TEST(Validate, FindsNothingWrongWithACollectedDataset) {
  const TempDir folder;
  ASSERT_TRUE(
      is_success(run_wam({"sim", "collect", "table", "--episodes", "2", "--view-size", "32"},
                         {.folder = folder.path()})));
  const RunResult result = run_wam({"validate", "table"}, {.folder = folder.path()});
  EXPECT_TRUE(is_success(result));
  EXPECT_TRUE(says(result, "no faults")) << result.out;
  const RunResult tables =
      run_wam({"validate", "table", "--no-pictures"}, {.folder = folder.path()});
  EXPECT_TRUE(is_success(tables));
  EXPECT_TRUE(says(tables, " 0 pictures")) << tables.out;
}

TEST(Validate, CanLeaveWarningsOutOfItsExitCode) {
  const SmallRobot robot;
  data::edit_json(robot.dataset() / "meta/info.json", [](json& info) { info["fps"] = 25; });
  const RunResult strict = run_wam({"validate", "dataset"}, {.folder = robot.folder()});
  EXPECT_EQ(strict.exit_code, 3) << strict.out;
  EXPECT_TRUE(says(strict, "warning: ") && says(strict, "\n0 errors")) << strict.out;
  const RunResult lenient =
      run_wam({"validate", "dataset", "--errors-only"}, {.folder = robot.folder()});
  EXPECT_EQ(lenient.exit_code, 0) << lenient.out;
}

TEST(SimCollect, SaysSoWhenItReusesACollection) {
  const TempDir folder;
  const std::vector<std::string> arguments = {"sim", "collect", "table", "--episodes", "1"};
  const RunResult first = run_wam(arguments, {.folder = folder.path()});
  EXPECT_TRUE(is_success(first));
  EXPECT_TRUE(says(first, "wrote table: 1 episodes")) << first.out;
  const auto written = fs::last_write_time(folder / "table/meta/info.json");
  const RunResult second = run_wam(arguments, {.folder = folder.path()});
  EXPECT_TRUE(is_success(second));
  EXPECT_TRUE(says(second, "reused")) << second.out;
  EXPECT_EQ(fs::last_write_time(folder / "table/meta/info.json"), written);
  const RunResult other =
      run_wam({"sim", "collect", "table", "--episodes", "2"}, {.folder = folder.path()});
  EXPECT_TRUE(is_refusal(other, 3, {"another collection", "remove the folder"}));
}

TEST(Plan, PrintsMemoryAndWork) {
  const SmallRobot robot;
  const RunResult result = robot.plan({});
  EXPECT_TRUE(is_success(result));
  for (const char* part :
       {"trainable parameters", "memory", "weights", "moments", "fragmentation", "FLOPs"}) {
    EXPECT_TRUE(says(result, part)) << part << "\n" << result.out;
  }
}

TEST(Train, LeavesARunThatIsDescribed) {
  const SmallRobot robot;
  const RunResult result = robot.train();
  EXPECT_TRUE(is_success(result));
  EXPECT_TRUE(says(result, "done at step 2")) << result.out;
  for (const char* name : {"config.yaml", "metadata.json", "metrics.jsonl", "plan.txt", "run.json",
                           "checkpoints/step_00000002/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(robot.run_dir() / name)) << name;
  }
  // The stored config is whole: it starts the same run without the file it was made from.
  const RunResult again = run_wam({"plan", "run/config.yaml"}, {.folder = robot.folder()});
  EXPECT_EQ(again.out, robot.plan({}).out);
}

}  // namespace
}  // namespace wam::cli_test
