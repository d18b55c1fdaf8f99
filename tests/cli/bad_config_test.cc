// Configs and command lines that are wrong: one line with place, value, rule and remedy; exit
// code 2.
#include <gtest/gtest.h>

#include "tests/cli/small_robot.h"

namespace wam::cli_test {
namespace {

// One robot for all: planning opens no dataset and writes nothing.
const SmallRobot& robot() {
  static const SmallRobot robot;
  return robot;
}

struct Refusal {
  const char* name;
  std::vector<std::string> arguments;
  std::vector<std::string> parts;
  int exit_code = 2;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class Override : public ::testing::TestWithParam<Refusal> {};
class Command : public ::testing::TestWithParam<Refusal> {};
class Text : public ::testing::TestWithParam<Refusal> {};

std::string case_name(const ::testing::TestParamInfo<Refusal>& info) { return info.param.name; }

TEST_P(Override, IsRefusedInOneLine) {
  EXPECT_TRUE(
      is_refusal(robot().plan(GetParam().arguments), GetParam().exit_code, GetParam().parts));
}

INSTANTIATE_TEST_SUITE_P(
    BadConfig, Override,
    ::testing::Values(
        Refusal{"UnknownKey", {"stepps=3"}, {"[config", "unknown key", "'stepps'", "'steps'?"}},
        Refusal{
            "UnknownSection", {"optimiser.lr=1"}, {"unknown key", "'optimiser'", "'optimizer'?"}},
        Refusal{"UnknownKeyOfSection", {"optimizer.lrr=1"}, {"[optimizer", "'lrr'", "'lr'?"}},
        Refusal{"UnknownKeyOfRobot",
                {"dataset.embodiment.veiws=[top]"},
                {"[embodiment", "'veiws'", "'views'?"}},
        Refusal{
            "WrongType", {"optimizer.lr=fast"}, {"[optimizer.lr", "'fast'", "expected a number"}},
        Refusal{"NotWhole", {"steps=1.5"}, {"steps", "'1.5'", "expected an integer"}},
        Refusal{"TooLong",
                {"steps=99999999999999999999"},
                {"steps", "99999999999999999999", "expected an integer"}},
        Refusal{"ListForNumber", {"steps=[1]"}, {"steps", "got a list", "expected an integer"}},
        Refusal{"ScalarForSection", {"model=3"}, {"[model", "'3'", "expected a map"}},
        Refusal{"Nothing", {"steps="}, {"steps", "got nothing", "expected an integer"}},
        Refusal{"TooSmall", {"steps=0"}, {"[steps]", "got 0", "at least 1"}},
        Refusal{"NotFinite", {"optimizer.lr=.nan"}, {"[optimizer.lr]", "got nan", "finite"}},
        Refusal{"TooManyBlocks",
                {"model.num_blocks=100000000000"},
                {"[model.num_blocks]", "got 100000000000", "at most 1024"}},
        Refusal{"TooManyTokens",
                {"model.num_blocks=1024", "dataset.embodiment.action_horizon=1000000"},
                {"[model]", "too many tokens", "Lower"}},
        Refusal{"MicroBatchDoesNotDivide",
                {"micro_batch_size=3", "global_batch_size=4"},
                {"[global_batch_size]", "got 4", "a multiple of micro_batch_size = 3",
                 "global_batch_size=6"}},
        Refusal{"HeadsDoNotDivide",
                {"model.heads=5"},
                {"[model.heads]", "5 heads of a width of 32", "multiple"}},
        Refusal{"UnknownChoice",
                {"noise=beat"},
                {"noise", "'beat'", "uniform, beta, decoupled", "'beta'?"}},
        Refusal{"UnknownRobot",
                {"dataset.embodiment=sim_tabel"},
                {"embodiment", "sim_tabel", "'sim_table'?"}},
        Refusal{"UnknownThingToWithhold",
                {"withhold=[state]"},
                {"[withhold]", "'state'", "clean_context, states, instructions", "'states'?"}},
        Refusal{"NoOtherSampleToTakeFrom",
                {"withhold=[states]", "micro_batch_size=1"},
                {"[withhold]", "states", "Raise micro_batch_size"}},
        Refusal{"UnknownPass",
                {"disable_passes=[fuse_linear_gelo]"},
                {"'fuse_linear_gelo'", "'fuse_linear_gelu'?"}},
        Refusal{"UnknownRecomputeName",
                {"recompute=list", "recompute_drop=[ffn/linear_gelu:7]"},
                {"'ffn/linear_gelu:7'", "Did you mean"}},
        Refusal{"BudgetOutOfReach",
                {"recompute=auto", "recompute_budget_bytes=1"},
                {"[recompute]", "at most 1 B", "Lower micro_batch_size"},
                4},
        Refusal{"PictureTheModelCannotTake",
                {"dataset.embodiment.view_height=30"},
                {"30 x 32", "multiples", "16", "picture_height: 32"}},
        Refusal{"PictureOfNothing",
                {"picture_width=-16"},
                {"[picture_width]", "got -16", "at least 0"}},
        Refusal{"NoAssignment", {"resume"}, {"[command line]", "'resume'", "key=value"}},
        Refusal{"NoYaml", {"steps=[1"}, {"[command line]", "'steps=[1'", "YAML"}},
        Refusal{"ViewsDoNotFitTiling",
                {"dataset.embodiment.tiling=side_by_side"},
                {"views", "side_by_side", "got 1"}}),
    case_name);

TEST_P(Command, IsRefusedInOneLine) {
  const RunResult result = run_wam(GetParam().arguments, {.folder = robot().folder()});
  EXPECT_TRUE(is_refusal(result, GetParam().exit_code, GetParam().parts));
}

INSTANTIATE_TEST_SUITE_P(
    BadCommandLine, Command,
    ::testing::Values(
        Refusal{"NoCommand", {}, {"[wam]", "command is missing", "validate", "wam --help"}},
        Refusal{"UnknownCommand", {"trian"}, {"[wam]", "'trian'", "'train'?"}},
        Refusal{"UnknownSubcommand", {"sim", "colect"}, {"[wam sim]", "'colect'", "'collect'?"}},
        Refusal{"UnknownOption",
                {"train", "run.yaml", "--resme"},
                {"[wam train]", "'--resme'", "'--resume'?"}},
        Refusal{"OptionBeforeCommand", {"--verbose"}, {"[wam]", "'--verbose'", "a command first"}},
        Refusal{"NoArgument", {"plan"}, {"[wam plan]", "config is required", "wam plan --help"}},
        Refusal{"TooManyArguments", {"validate", "a", "b"}, {"[wam validate]", "'b'", "too many"}},
        Refusal{"NoNumber",
                {"sim", "collect", "x", "--gop", "abc"},
                {"[wam sim collect]", "--gop", "abc", "number"}},
        Refusal{"NegativeSeed",
                {"sim", "collect", "x", "--seed", "-1"},
                {"--seed", "'-1'", "0 or more"}},
        Refusal{"OddView",
                {"sim", "collect", "x", "--view-size", "33"},
                {"[sim.view_size]", "33", "even"}},
        Refusal{"UnknownRobot",
                {"stats", "dataset", "--embodiment", "libero_sin"},
                {"[--embodiment]", "'libero_sin'", "'libero_sim'?"}},
        Refusal{"TagAndRobot",
                {"stats", "dataset", "--embodiment", "libero_sim", "--tag", "x"},
                {"[wam stats]", "--tag", "excludes"}},
        Refusal{"UnknownRelativeKey",
                {"stats", "dataset", "--relative", "leg"},
                {"'leg'", "no action"}},
        Refusal{"RelativeOutOfNothing",
                {"stats", "dataset", "--relative-out", "r.json"},
                {"[--relative-out]", "--relative KEY"}},
        Refusal{"UnknownEpisode",
                {"stats", "dataset", "--episodes", "7"},
                {"[--episodes]", "got 7", "0 to 0"}},
        Refusal{"FileExists",
                {"stats", "dataset", "--out", "run.yaml"},
                {"[run.yaml]", "exists", "--force"}},
        Refusal{"NoConfig",
                {"plan", "none.yaml"},
                {"[none.yaml]", "No such file", "Check the path"},
                3},
        Refusal{"ConfigIsFolder", {"plan", "dataset"}, {"[dataset]", "Is a directory", "file"}, 3},
        Refusal{"NoFolderForOutput",
                {"stats", "dataset", "--out", "none/m.json"},
                {"[none/m.json]", "No such file", "folder must exist"},
                3}),
    case_name);

TEST_P(Text, IsRefusedInOneLine) {
  const TempDir folder;
  data::write_text(folder / "bad.yaml", GetParam().arguments[0]);
  const RunResult result = run_wam({"plan", "bad.yaml"}, {.folder = folder.path()});
  EXPECT_TRUE(is_refusal(result, GetParam().exit_code, GetParam().parts));
}

INSTANTIATE_TEST_SUITE_P(
    BadYaml, Text,
    ::testing::Values(
        Refusal{"Empty", {""}, {"[dataset.embodiment]", "no robot", "sim_table"}},
        Refusal{"RepeatedKey",
                {"steps: 3\nseed: 1\nsteps: 4\n"},
                {"line 3", "twice", "'steps'", "Keep one"}},
        Refusal{"RepeatedKeyOfSection",
                {"model:\n  dim: 3\n  dim: 4\n"},
                {"[model, line 3]", "twice", "'dim'"}},
        Refusal{"Unfinished", {"steps: [3\n"}, {"[bad.yaml, line 2]", "not YAML"}},
        Refusal{"List", {"- 1\n- 2\n"}, {"[config, line 1]", "got a list", "a map"}},
        Refusal{"Bytes", {std::string("\x01\xff\xfe\x80", 4)}, {"["}},
        Refusal{"KeyWithLineBreak", {"\"a\\nwam: all is well\": 3\n"}, {"unknown key"}},
        Refusal{"KeyThatSpeaksToTheTerminal", {"\"\\e[2Jx\": 3\n"}, {"unknown key"}},
        Refusal{"DeepNesting", {std::string(100000, '[')}, {"[bad.yaml", "not YAML"}},
        Refusal{"RefersToItself", {"model: &m {dim: *m}\n"}, {"["}},
        Refusal{"TwoDocuments", {"steps: 3\n---\nsteps: 4\n"}, {"[bad.yaml]", "got 2", "'---'"}}),
    case_name);

}  // namespace
}  // namespace wam::cli_test
