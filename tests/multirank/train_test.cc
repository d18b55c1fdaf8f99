// The binary on several ranks, as a launcher starts it, against one process; resumes on other
// numbers of ranks; and what it does when a rank is in trouble.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/e2e/small_run.h"
#include "wam/base/error.h"
#include "wam/base/philox.h"
#include "wam/dist/mpi.h"
#include "wam/dist/process_testing.h"
#include "wam/train/metrics_log.h"
#include "wam/train/metrics_sink.h"

namespace wam {
namespace {

using dist::Process;

// One sample a micro-batch, four a step: four ranks accumulate once, two twice, one four times.
// Sums of micro-batches are plain additions, so that one process can add as the ranks do.
std::vector<std::string> base(std::vector<std::string> more = {}) {
  std::vector<std::string> all = {"micro_batch_size=1", "disable_passes=[fuse_accumulation]",
                                  "threads=1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string config_file(const TempDir& folder, const std::string& name,
                        const std::vector<std::string>& overrides) {
  const std::filesystem::path path = folder / (name + ".yaml");
  write_file_atomic(path, train::to_yaml(e2e::config(folder / name, base(overrides))));
  return path.string();
}

std::vector<std::string> command(const std::string& config, bool resume) {
  std::vector<std::string> words = {WAM_BINARY, "train", config, "--quiet"};
  if (resume) words.push_back("--resume");
  return words;
}

std::vector<Process> start_ranks(const TempDir& folder, int ranks, const std::string& config,
                                 bool resume = false) {
  return dist::start_world(folder.path(), ranks, command(config, resume));
}

void run_ranks(const TempDir& folder, int ranks, const std::string& config, bool resume = false) {
  for (const Process& rank : start_ranks(folder, ranks, config, resume)) {
    ASSERT_EQ(rank.wait(100), 0) << rank.err();
  }
}

void run_mpi(const TempDir& folder, int ranks, const std::string& config) {
  const Process mpi = dist::start(folder.path(), "mpi", dist::mpirun(ranks, command(config, false)),
                                  {{"OMP_NUM_THREADS", "1"}});
  ASSERT_EQ(mpi.wait(100), 0) << mpi.err();
}

std::vector<double> losses_alone(const TempDir& folder, const std::string& name,
                                 std::vector<std::string> overrides) {
  e2e::run(e2e::config(folder / name, base(std::move(overrides))));
  return e2e::losses(folder / name);
}

// Without clipping nothing depends on the order in which the norm is added up.
const std::vector<std::string> kNoClip = {"optimizer.clip_grad=0"};

TEST(TrainRanks, FourRanksByMpiGiveTheBitsOfOneProcess) {
  if (!dist::has_mpi()) GTEST_SKIP() << "built without MPI";
  if (!dist::has_mpirun()) GTEST_SKIP() << "mpirun is not installed";
  const TempDir folder;
  const std::vector<double> want = losses_alone(folder, "alone", kNoClip);
  const std::string config =
      config_file(folder, "full", {"optimizer.clip_grad=0", "sharding.strategy=full"});
  run_mpi(folder, 4, config);
  EXPECT_EQ(e2e::losses(folder / "full"), want);
}

// What each step was given, in the order of the global batch.
std::vector<std::string> samples(const std::filesystem::path& run) {
  std::vector<std::string> steps;
  for (const train::MetricsRecord& record : train::read_metrics_log(run / "metrics.jsonl")) {
    if (record.text("kind") == "train") steps.push_back(record.text("samples").value_or("none"));
  }
  return steps;
}

// Validation is divided among the ranks, also where it does not come out even: 3 micro-batches of 4
// ranks, 5 of 2. Its losses are gathered and added in one order.
TEST(TrainRanks, ValidationIsTheSameForAnyNumberOfRanks) {
  const TempDir folder;
  std::vector<std::vector<double>> curves;
  for (const auto& [ranks, windows] : {std::pair(1, 3), std::pair(4, 3), std::pair(1, 5), std::pair(2, 5)}) {
    const std::string name = std::to_string(ranks) + "_" + std::to_string(windows);
    run_ranks(folder, ranks,
              config_file(folder, name,
                          {"steps=2", "validate_every=1", "optimizer.clip_grad=0",
                           "validation_samples=" + std::to_string(windows)}));
    curves.push_back(train::read_curve(folder / name, "validation", "loss").values);
    EXPECT_EQ(curves.back().size(), 3u);
  }
  EXPECT_EQ(curves[1], curves[0]);
  EXPECT_EQ(curves[3].front(), curves[2].front());
}

// Encoders divided over the ranks compute what whole ones do; prompts that only some ranks have not
// seen do not hold the others up.
TEST(TrainRanks, DividedEncodersChangeNoBit) {
  const TempDir folder;
  for (const std::string strategy : {"none", "full"}) {
    std::vector<std::vector<double>> losses;
    for (const std::string encoders : {"replicated", "sharded"}) {
      const std::string name = strategy + "_" + encoders;
      run_ranks(folder, 4,
                config_file(folder, name,
                            {"steps=6", "sharding.strategy=" + strategy, "sharding.encoders=" + encoders,
                             "validation_samples=3"}));
      losses.push_back(e2e::losses(folder / name));
    }
    EXPECT_EQ(losses[1], losses[0]) << strategy;
  }
}

// Four ranks for 8 steps, then two up to 14, then one up to 20. With two ranks micro-batches 0, 1
// and 2, 3 are added first; what that does to a loss is bounded by what reversing the samples'
// order of addition may do: some units in the last place a step, see shard_test.
TEST(TrainRanks, ElasticResumeFromFourRanksToTwoToOne) {
  const TempDir folder;
  const std::vector<double> want = losses_alone(folder, "alone", {"log_samples=true"});
  for (const auto& [ranks, until] : {std::pair(4, 8), std::pair(2, 14), std::pair(1, 20)}) {
    // The schedule is that of 20 steps: an interrupted run, not a shorter one.
    const std::string config =
        config_file(folder, "elastic", {"sharding.strategy=full", "save_every=1", "log_samples=true"});
    const bool resume = ranks != 4;
    if (ranks == 1) {
      run_ranks(folder, 1, config, resume);
      break;
    }
    std::vector<Process> running = start_ranks(folder, ranks, config, resume);
    char name[32];
    std::snprintf(name, sizeof name, "step_%08d", until);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!std::filesystem::exists(folder / "elastic" / "checkpoints" / name)) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << running[0].err();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    kill(running.back().pid, SIGTERM);  // one rank is asked, all stop at the same step
    for (const Process& rank : running) ASSERT_EQ(rank.wait(60), 0) << rank.err();
  }
  const std::vector<double> got = e2e::losses(folder / "elastic");
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(samples(folder / "elastic"), samples(folder / "alone"));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 64 * 0x1p-24 * double(i + 1) * want[i]) << i;
}

TEST(TrainRanks, AShardedCheckpointHoldsWhatOneProcessWrites) {
  const TempDir folder;
  losses_alone(folder, "alone", {"optimizer.clip_grad=0", "steps=3"});
  const std::string config =
      config_file(folder, "ranks", {"optimizer.clip_grad=0", "steps=3", "sharding.strategy=full"});
  run_ranks(folder, 4, config);
  const auto checkpoint = [&](const char* run) {
    return folder / run / "checkpoints" / "step_00000003";
  };
  for (const std::string file : {"model.safetensors", "optimizer.safetensors"}) {
    const auto alone = open_tensor_archive(checkpoint("alone") / file);
    const auto ranks = open_tensor_archive(checkpoint("ranks") / (file + ".index.json"));
    ASSERT_EQ(ranks->names(), alone->names());
    for (const std::string& name : alone->names()) {
      const HostTensor a = alone->load(name), b = ranks->load(name);
      ASSERT_EQ(a.type(), b.type());
      EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())), 0) << name;
    }
  }
}

TEST(TrainRanks, RanksThatDisagreeAreNamed) {
  const TempDir folder;
  const std::string one = config_file(folder, "run", {"steps=3"});
  const std::string other = (folder / "other.yaml").string();
  write_file_atomic(other, read_text_file(one) + "\n# the same\n");
  const std::string port = std::to_string(dist::free_port());
  std::vector<Process> ranks;
  for (int r = 0; r < 2; ++r) {
    std::vector<std::string> words = command(r == 0 ? one : other, false);
    if (r == 1) words.push_back("optimizer.lr=0.5");
    ranks.push_back(dist::start(folder.path(), "rank" + std::to_string(r), words,
                                {{"RANK", std::to_string(r)},
                                 {"WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "127.0.0.1"},
                                 {"MASTER_PORT", port},
                                 {"OMP_NUM_THREADS", "1"}}));
  }
  for (const Process& rank : ranks) {
    // Each finds out for itself, or hears first that the other one has ended for that reason.
    const int code = rank.wait(30);
    EXPECT_TRUE(code == 2 || code == 5) << code << "\n" << rank.err();
    EXPECT_NE(rank.err().find("the ranks disagree on the configuration"), std::string::npos)
        << rank.err();
  }
}

TEST(TrainRanks, ABatchThatCannotBeDealtIsRefused) {
  const TempDir folder;
  const std::string config = config_file(folder, "run", {"steps=3"});
  for (const Process& rank : start_ranks(folder, 3, config)) {
    const int code = rank.wait(30);
    EXPECT_TRUE(code == 2 || code == 5) << code;  // found it, or heard of it from who found it first
    EXPECT_NE(rank.err().find("3 ranks"), std::string::npos) << rank.err();
  }
}

// A rank is killed at a random moment: the others say so and end, nothing is torn, and the run
// resumed is the uninterrupted one.
TEST(TrainRanks, KilledAtARandomMomentAndResumed) {
  const TempDir folder;
  const std::string config = config_file(
      folder, "killed",
      {"sharding.strategy=full", "save_every=2", "steps=30", "sharding.silence_seconds=5"});
  Random random(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()),
                RandomUse::kTest, 0, 0);
  std::vector<Process> ranks = start_ranks(folder, 4, config);
  const double moment = 0.4 + 1.5 * random.uniform();
  std::this_thread::sleep_for(std::chrono::duration<double>(moment));
  const size_t victim = static_cast<size_t>(4 * random.uniform()) % 4;
  kill(ranks[victim].pid, SIGKILL);
  for (size_t r = 0; r < ranks.size(); ++r) {
    const int code = ranks[r].wait(20);
    if (r == victim || code == 0) continue;  // killed after its end
    EXPECT_EQ(code, 5) << moment << ": " << ranks[r].err();
    EXPECT_NE(ranks[r].err().find("rank " + std::to_string(victim)), std::string::npos)
        << ranks[r].err();
  }
  run_ranks(folder, 4, config, /*resume=*/true);
  const std::string whole = config_file(folder, "whole", {"sharding.strategy=full", "steps=30"});
  run_ranks(folder, 4, whole);
  EXPECT_EQ(e2e::losses(folder / "killed"), e2e::losses(folder / "whole"))
      << "victim " << victim << " at " << moment;
}

}  // namespace
}  // namespace wam
