// Worlds of several processes: the meeting over sockets and MPI, and what the others say of a rank
// that dies, stops or gives up.
#include <gtest/gtest.h>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "wam/base/files.h"
#include "wam/base/strings.h"
#include "wam/dist/mpi.h"
#include "wam/dist/process_testing.h"

namespace wam::dist {
namespace {

std::vector<Process> start_ranks(const TempDir& folder, int size,
                                 const std::vector<std::string>& arguments,
                                 const std::string& silence = "5") {
  std::vector<std::string> command = {WAM_WORLD_PROBE};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return start_world(folder.path(), size, command, {{"PROBE_SILENCE", silence}});
}

// "rank 1 of 2: HASH r0r1" -> "HASH r0r1"
std::string result_of(const std::string& out) {
  const size_t colon = out.find(": ");
  return colon == std::string::npos ? "nothing in '" + out + "'"
                                    : std::string(trim(out.substr(colon + 2)));
}

void wait_until_all_step(const std::vector<Process>& ranks) {
  for (int tries = 0; tries < 1000; ++tries) {
    size_t ready = 0;
    for (const Process& rank : ranks)
      ready += std::filesystem::exists(rank.out_path) && !rank.out().empty();
    if (ready == ranks.size()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "the ranks do not get going: " << ranks[0].err();
}

TEST(World, TwoProcessesMeetByTorchrunVariables) {
  const TempDir folder;
  std::vector<Process> ranks = start_ranks(folder, 2, {"sums"});
  for (Process& rank : ranks) ASSERT_EQ(rank.wait(20), 0) << rank.err();
  EXPECT_EQ(result_of(ranks[0].out()), result_of(ranks[1].out()));
  EXPECT_NE(ranks[0].out().find("r0r1"), std::string::npos) << ranks[0].out();
}

TEST(World, MpiAndSocketsGiveTheSameBits) {
  if (!has_mpi()) GTEST_SKIP() << "built without MPI";
  if (!has_mpirun()) GTEST_SKIP() << "mpirun is not installed";
  const TempDir folder;
  std::vector<Process> ranks = start_ranks(folder, 3, {"sums"});
  for (Process& rank : ranks) ASSERT_EQ(rank.wait(20), 0) << rank.err();
  const Process mpi = start(folder.path(), "mpi", mpirun(3, {WAM_WORLD_PROBE, "sums"}), {});
  ASSERT_EQ(mpi.wait(30), 0) << mpi.err();
  const std::vector<std::string> lines = split(std::string(trim(mpi.out())), '\n');
  ASSERT_EQ(lines.size(), 3u) << mpi.out();
  for (const std::string& line : lines) EXPECT_EQ(result_of(line), result_of(ranks[0].out()));
}

TEST(World, TwoProcessesWithOneRankAreRefused) {
  const TempDir folder;
  const std::string port = std::to_string(free_port());
  std::vector<Process> ranks;
  for (const std::string rank : {"0", "1", "1"}) {
    ranks.push_back(start(folder.path(), "rank" + std::to_string(ranks.size()),
                          {WAM_WORLD_PROBE, "sums"},
                          {{"RANK", rank},
                           {"WORLD_SIZE", "3"},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", port}}));
  }
  for (Process& rank : ranks) {
    EXPECT_EQ(rank.wait(20), 5);
    EXPECT_NE(rank.err().find("claim one rank"), std::string::npos) << rank.err();
  }
}

class Trouble : public testing::TestWithParam<int> {};

// Every other rank ends with exit code 5 and names the victim and its phase, at once.
TEST_P(Trouble, ADeadRankIsNamed) {
  const TempDir folder;
  std::vector<Process> ranks = start_ranks(folder, 3, {"step", "30"});
  wait_until_all_step(ranks);
  const auto victim = static_cast<size_t>(GetParam());
  kill(ranks[victim].pid, SIGKILL);
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (r == victim) continue;
    EXPECT_EQ(ranks[r].wait(5), 5);
    const std::string err = ranks[r].err();
    EXPECT_NE(err.find("[rank " + std::to_string(victim) + "] died (step"), std::string::npos)
        << err;
    EXPECT_NE(err.find("forward and backward"), std::string::npos) << err;
  }
  EXPECT_EQ(ranks[victim].wait(5), 128 + SIGKILL);
}

TEST_P(Trouble, AStoppedRankIsNamed) {
  const TempDir folder;
  std::vector<Process> ranks = start_ranks(folder, 3, {"step", "30"}, "1.5");
  wait_until_all_step(ranks);
  const auto victim = static_cast<size_t>(GetParam());
  kill(ranks[victim].pid, SIGSTOP);
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (r == victim) continue;
    EXPECT_EQ(ranks[r].wait(6), 5);
    const std::string err = ranks[r].err();
    EXPECT_NE(err.find("[rank " + std::to_string(victim) + "] gives no sign of life"),
              std::string::npos)
        << err;
  }
  kill(ranks[victim].pid, SIGCONT);
  EXPECT_EQ(ranks[victim].wait(6), 5) << "the stopped rank goes on alone";
}

INSTANTIATE_TEST_SUITE_P(Victims, Trouble, testing::Values(0, 2));

TEST(World, ARanksOwnErrorReachesAll) {
  const TempDir folder;
  std::vector<Process> ranks = start_ranks(folder, 3, {"report"});
  for (size_t r = 0; r < ranks.size(); ++r) {
    EXPECT_EQ(ranks[r].wait(10), r == 1 ? 3 : 5);
    EXPECT_NE(ranks[r].err().find("[episode 7] is damaged"), std::string::npos) << ranks[r].err();
    if (r == 1) continue;
    const std::string err = ranks[r].err();
    EXPECT_NE(err.find("[rank 1] ended with an error (step 10, loading"), std::string::npos) << err;
  }
}

}  // namespace
}  // namespace wam::dist
