// Whole runs: what may not change a bit does not; a resumed run equals an uninterrupted one.
#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/e2e/small_run.h"
#include "wam/base/error.h"

namespace wam {
namespace {

std::vector<double> losses_with(const std::string& name, const std::vector<std::string>& overrides) {
  const TempDir folder;
  e2e::run(e2e::config(folder / name, overrides));
  return e2e::losses(folder / name);
}

class Unchanged : public testing::Test {
 protected:
  static const std::vector<double>& reference() {
    static const std::vector<double> losses = losses_with("reference", {});
    return losses;
  }
  static void expect_same(const std::string& name, const std::vector<std::string>& overrides) {
    const std::vector<double> got = losses_with(name, overrides);
    ASSERT_EQ(got.size(), 20u);
    ASSERT_EQ(got, reference()) << name;
  }
};

TEST(Training, LossOfOneDrawFalls) {
  const std::vector<double> losses =
      losses_with("fixed", {"steps=60", "fix_draw=true", "save_every=0", "optimizer.lr=0.01"});
  EXPECT_LT(losses.back(), 0.5 * losses.front());
}

TEST_F(Unchanged, FullRecompute) { expect_same("full", {"recompute=full"}); }

TEST_F(Unchanged, RecomputeToABudget) {
  expect_same("budget", {"recompute=auto", "recompute_budget_bytes=1000000"});
}

TEST_F(Unchanged, EveryFusionOffOneByOne) {
  for (const std::string pass : {"fuse_linear_gelu", "fuse_residual_norm", "fuse_linear_dgrad_gelu",
                                 "merge_common_subexpressions", "remove_dead_code"}) {
    expect_same(pass, {"disable_passes=[" + pass + "]"});
  }
}

// Without fused ops the q/k normalisation is differentiated part by part and sums run in another
// order: float32 rounding (6e-8), grown by sums of a few hundred terms and by 20 optimizer steps.
TEST_F(Unchanged, AllOpsDecomposedAgreesToRounding) {
  const std::vector<double> plain = losses_with("plain", {"fuse=false"});
  ASSERT_EQ(plain.size(), reference().size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_NEAR(plain[i], reference()[i], 20 * 300 * 6e-8 * reference()[i]) << i;
  }
}

TEST_F(Unchanged, OneAndTwoThreads) {
  const int before = omp_get_max_threads();
  expect_same("one", {"threads=1"});
  expect_same("two", {"threads=2"});
  omp_set_num_threads(before);
}

TEST_F(Unchanged, WorkersAndPrefetch) {
  expect_same("workers", {"dataset.num_workers=3", "dataset.prefetch_batches=1"});
}

TEST_F(Unchanged, NotWhenSomethingIsWithheld) {
  for (const std::string what : {"clean_context", "states", "instructions"}) {
    EXPECT_NE(losses_with(what, {"withhold=[" + what + "]"}), reference()) << what;
  }
}

TEST(Resume, EqualsTheUninterruptedRun) {
  const TempDir folder;
  e2e::run(e2e::config(folder / "whole"));
  e2e::run(e2e::config(folder / "parts", {"steps=20", "save_every=5"}));
  // Cut back to step 10, as if killed after its checkpoint.
  for (const int step : {15, 20}) {
    char name[32];
    std::snprintf(name, sizeof name, "step_%08d", step);
    std::filesystem::remove_all(folder / "parts" / "checkpoints" / name);
  }
  e2e::run(e2e::config(folder / "parts", {"save_every=5"}), /*resume=*/true);
  EXPECT_EQ(e2e::losses(folder / "parts"), e2e::losses(folder / "whole"));
  for (const std::string file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(e2e::checkpoint_bytes(folder / "parts", 20, file),
              e2e::checkpoint_bytes(folder / "whole", 20, file));
  }
}

// The binary itself trains and is killed while it writes its third checkpoint. (A fork without exec
// would inherit OpenMP's pool without its threads.)
void train_until_killed_in_third_checkpoint(const std::filesystem::path& folder) {
  const std::filesystem::path run_dir = folder / "killed", config = folder / "run.yaml";
  write_file_atomic(config, train::to_yaml(e2e::config(run_dir, {"steps=40", "save_every=10"})));
  const std::string path = config.string();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl(WAM_BINARY, WAM_BINARY, "train", path.c_str(), "--quiet", nullptr);
    _exit(127);
  }
  const std::filesystem::path temporary = run_dir / "checkpoints" / ".writing-step_00000030";
  int status = 0;
  bool ended = false;
  while (!ended && !std::filesystem::exists(temporary)) {
    ended = waitpid(child, &status, WNOHANG) != 0;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  ASSERT_FALSE(ended) << "the run ended with status " << status << " before its third checkpoint";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Resume, AfterKillInsideAThirdCheckpoint) {
  e2e::dataset();  // before the fork: both processes use it
  const TempDir folder;
  train_until_killed_in_third_checkpoint(folder.path());
  EXPECT_FALSE(std::filesystem::exists(folder / "killed" / "checkpoints" / "step_00000030"));
  e2e::run(e2e::config(folder / "killed", {"steps=40", "save_every=10"}), /*resume=*/true);
  e2e::run(e2e::config(folder / "whole", {"steps=40", "save_every=10"}));
  EXPECT_EQ(e2e::losses(folder / "killed"), e2e::losses(folder / "whole"));
  EXPECT_EQ(e2e::checkpoint_bytes(folder / "killed", 40, "model.safetensors"),
            e2e::checkpoint_bytes(folder / "whole", 40, "model.safetensors"));
}

TEST(RunFolder, RefusesASecondRunAndOtherSettings) {
  const TempDir folder;
  e2e::run(e2e::config(folder / "run", {"steps=2"}));
  EXPECT_THROW(e2e::run(e2e::config(folder / "run", {"steps=2"})), ConfigError);
  EXPECT_THROW(e2e::run(e2e::config(folder / "run", {"steps=2", "optimizer.lr=0.1"}), true), ConfigError);
}

}  // namespace
}  // namespace wam
