// Runs that cannot start, go on or be saved: one line, the right exit code, and nothing lost.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <set>

#include "tests/cli/small_robot.h"

namespace wam::cli_test {
namespace {

namespace fs = std::filesystem;

// Names in the folder of checkpoints; leftovers of a save would show.
std::set<std::string> checkpoints(const SmallRobot& robot) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(robot.run_dir() / "checkpoints")) {
    names.insert(entry.path().filename().string());
  }
  return names;
}
const std::set<std::string> kFirst = {"step_00000001"};
const std::set<std::string> kBoth = {"step_00000001", "step_00000002"};

fs::path checkpoint(const SmallRobot& robot, int step) {
  return robot.run_dir() / "checkpoints" / ("step_0000000" + std::to_string(step));
}

// Both steps done; then the second forgotten, so that the run has one more to do and save.
void train_first_step(const SmallRobot& robot) {
  ASSERT_TRUE(is_success(robot.train()));
  fs::remove_all(checkpoint(robot, 2));
}

struct BadStart {
  const char* name;
  std::vector<std::string> arguments;
  std::vector<std::string> parts;
  int exit_code = 3;
};
void PrintTo(const BadStart& start, std::ostream* out) { *out << start.name; }

class Start : public ::testing::TestWithParam<BadStart> {};

TEST_P(Start, IsRefusedInOneLine) {
  const SmallRobot robot;
  EXPECT_TRUE(
      is_refusal(robot.train(GetParam().arguments), GetParam().exit_code, GetParam().parts));
}

INSTANTIATE_TEST_SUITE_P(
    BadRun, Start,
    ::testing::Values(
        BadStart{"TokenizerAbsent",
                 {"text_encoder.tokenizer=none.model"},
                 {"[none.model]", "tokenizer"}},
        BadStart{"TokenizerNotNamed",
                 {"text_encoder.tokenizer="},
                 {"[text_encoder.tokenizer", "nothing"},
                 2},
        BadStart{"TokenizerNotAModel",
                 {"text_encoder.tokenizer=run.yaml"},
                 {"[run.yaml]", "SentencePiece"}},
        BadStart{"DatasetNotNamed", {"dataset.path=\"\""}, {"[dataset.path]", "no dataset"}, 2},
        BadStart{"WeightsAbsent", {"model.weights=none.safetensors"}, {"[none.safetensors]"}},
        BadStart{"WeightsAreText", {"model.weights=run.yaml"}, {"[run.yaml]"}},
        BadStart{"VaeWeightsAbsent", {"vae.weights=none.pth"}, {"[none.pth]"}},
        BadStart{"InitFromNothing", {"--init-from", "none"}, {"[none]"}},
        BadStart{"NoGpu", {"device=cuda"}, {"device]", "cuda", "device: cpu"}, 4},
        BadStart{"PlanLargerThanMemory",
                 {"model.dim=32768", "model.ffn_dim=131072", "model.layers=64"},
                 {"memory", "larger", "Lower micro_batch_size"},
                 4},
        BadStart{
            "RunFolderBelowAFile", {"run_dir=run.yaml/run"}, {"run.yaml/run", "Not a directory"}},
        BadStart{"HeldOutEpisodeUnknown",
                 {"dataset.validation_episodes=[9]"},
                 {"validation_episodes", "9"},
                 2},
        BadStart{"EveryEpisodeHeldOut",
                 {"dataset.validation_last=1"},
                 {"validation_last", "no episode"},
                 2}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(RunFolder, MustBeWritable) {
  const SmallRobot robot;
  fs::create_directory(robot.run_dir());
  fs::permissions(robot.run_dir(), fs::perms::owner_read | fs::perms::owner_exec);
  const RunResult result = robot.train({}, {.obey_permissions = true});
  fs::permissions(robot.run_dir(), fs::perms::owner_all);
  EXPECT_TRUE(is_refusal(result, 3, {"[run", "Permission denied"}));
  EXPECT_TRUE(fs::is_empty(robot.run_dir()));
}

TEST(RunFolder, BelongsToOneProcess) {
  const SmallRobot robot;
  fs::create_directory(robot.run_dir());
  const int lock = open((robot.run_dir() / ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_TRUE(is_refusal(robot.train(), 3, {"[run]", "in use", "run_dir"}));
  close(lock);
}

TEST(RunFolder, OfAnEarlierRunIsNotOverwritten) {
  const SmallRobot robot;
  ASSERT_TRUE(is_success(robot.train()));
  EXPECT_TRUE(is_refusal(robot.train(), 2, {"[run]", "earlier run", "--resume"}));
  EXPECT_TRUE(is_refusal(robot.train({"--resume", "optimizer.lr=0.5"}), 2,
                         {"step_00000002", "other settings", "--init-from"}));
  EXPECT_EQ(checkpoints(robot), kBoth);
}

TEST(Saving, FailsOnAFileThatGetsTooLongAndKeepsTheEarlierCheckpoint) {
  const SmallRobot robot;
  train_first_step(robot);
  const std::string before = read_text_file(checkpoint(robot, 1) / "model.safetensors");
  const RunResult result = robot.train({"--resume", "checkpoint.retries=0"}, {.max_file_bytes = 30000});
  EXPECT_TRUE(is_refusal(result, 3, {"model.safetensors", "File too large"}));
  EXPECT_EQ(checkpoints(robot), kFirst);
  EXPECT_EQ(read_text_file(checkpoint(robot, 1) / "model.safetensors"), before);
  EXPECT_TRUE(is_success(robot.train({"--resume"})));
  EXPECT_EQ(checkpoints(robot), kBoth);
}

// A file system of its own for the run folder, seen by this process and its children alone.
class SmallDisk {
 public:
  SmallDisk(const fs::path& folder, int64_t size_bytes) : folder_(folder) {
    fs::create_directories(folder);
    const std::string options = "size=" + std::to_string(size_bytes);
    mounted_ = unshare(CLONE_NEWNS) == 0 &&
               mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path folder_;
  bool mounted_ = false;
};

// What a folder takes on a disk of whole pages.
int64_t disk_bytes(const fs::path& folder) {
  constexpr int64_t kPage = 4096;
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    bytes += kPage;
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

TEST(Saving, FailsOnAFullDiskAndKeepsTheEarlierCheckpoint) {
  const SmallRobot robot;
  train_first_step(robot);
  const int64_t room = disk_bytes(robot.run_dir()) + disk_bytes(checkpoint(robot, 1)) / 2;
  fs::rename(robot.run_dir(), robot.folder() / "saved");
  const SmallDisk disk(robot.run_dir(), room);
  if (!disk.mounted()) GTEST_SKIP() << "this process may not mount a small file system";
  fs::copy(robot.folder() / "saved", robot.run_dir(), fs::copy_options::recursive);
  const RunResult result = robot.train({"--resume", "cache.folder=../cache"});
  EXPECT_TRUE(is_refusal(result, 3, {"[run/checkpoints", "not enough free space", "in reserve", "Free space"}));
  EXPECT_EQ(checkpoints(robot), kFirst);
}

TEST(Resuming, RefusesACheckpointCutShort) {
  const SmallRobot robot;
  train_first_step(robot);
  cut_file(checkpoint(robot, 1) / "model.safetensors", 0.5);
  EXPECT_TRUE(is_refusal(robot.train({"--resume"}), 3,
                         {"model.safetensors", "cut short", "older checkpoint"}));
  EXPECT_EQ(checkpoints(robot), kFirst);
}

TEST(Resuming, RefusesACheckpointWithoutItsState) {
  const SmallRobot robot;
  train_first_step(robot);
  data::write_text(checkpoint(robot, 1) / "trainer_state.json", "{\"step\": ");
  EXPECT_TRUE(
      is_refusal(robot.train({"--resume"}), 3, {"trainer_state.json", "JSON", "older checkpoint"}));
}

TEST(InitFrom, RefusesWeightsOfAnotherShape) {
  const SmallRobot robot;
  ASSERT_TRUE(is_success(robot.train()));
  const RunResult result = robot.train(
      {"--init-from", checkpoint(robot, 2).string(), "model.ffn_dim=48", "run_dir=other"});
  EXPECT_TRUE(is_refusal(result, 3, {"model.safetensors", "blocks.0.ffn.0.weight", "48"}));
}

TEST(InitFrom, RefusesWeightsCutShort) {
  const SmallRobot robot;
  ASSERT_TRUE(is_success(robot.train()));
  cut_file(checkpoint(robot, 2) / "model.safetensors", 0.5);
  const RunResult result =
      robot.train({"--init-from", checkpoint(robot, 2).string(), "run_dir=other"});
  EXPECT_TRUE(is_refusal(result, 3, {"model.safetensors"}));
}

TEST(Eval, RefusesWhatIsNoCheckpoint) {
  const SmallRobot robot;
  const RunResult result = run_wam({"eval", "none"}, {.folder = robot.folder()});
  EXPECT_TRUE(is_refusal(result, 3, {"[none", "no checkpoint", "checkpoints/"}));
}

TEST(Eval, RefusesACheckpointCutShort) {
  const SmallRobot robot;
  ASSERT_TRUE(is_success(robot.train()));
  cut_file(checkpoint(robot, 2) / "model.safetensors", 0.5);
  const RunResult result = run_wam({"eval", checkpoint(robot, 2).string(), "--all-episodes"},
                                   {.folder = robot.folder()});
  EXPECT_TRUE(is_refusal(result, 3, {"model.safetensors"}));
}

TEST(Eval, UsesTheStatisticsOfTheTraining) {
  const SmallRobot robot;
  ASSERT_TRUE(is_success(robot.train()));
  const std::vector<std::string> arguments = {"eval",      checkpoint(robot, 2).string(),
                                              "other: #1", "--all-episodes",
                                              "--windows", "1",
                                              "--steps",   "1"};
  fs::copy(robot.dataset(), robot.folder() / "other: #1", fs::copy_options::recursive);
  const RunResult same = run_wam(arguments, {.folder = robot.folder()});
  EXPECT_TRUE(is_success(same));
  data::edit_json(robot.folder() / "other: #1/meta/stats.json", [](nlohmann::json& stats) {
    for (auto& value : stats["action"]["q99"]) value = 2 * value.get<double>();
  });
  EXPECT_EQ(run_wam(arguments, {.folder = robot.folder()}).out, same.out);
}

TEST(OddPictures, AreTrainedWithAWarning) {
  const SmallRobot robot;
  const RunResult result = robot.train({"picture_height=48", "picture_width=48"});
  EXPECT_TRUE(is_success(result));
  for (const char* part : {"warning", "3 x 3", "2 x 2", "4 x 4"}) {
    EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  }
}

}  // namespace
}  // namespace wam::cli_test
