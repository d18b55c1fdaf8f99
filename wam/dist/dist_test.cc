// Collectives over threads against plain sums; meshes; what the launcher's variables mean.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "wam/base/error.h"
#include "wam/base/philox.h"
#include "wam/dist/groups.h"
#include "wam/dist/launch.h"
#include "wam/dist/loopback.h"

namespace wam::dist {
namespace {

// Runs f(groups) on `mesh.world()` threads; the first exception is thrown again.
template <typename F>
void on_ranks(int world, int shard_size, const F& f, HostCommunicatorOptions options = {}) {
  Loopback loopback(world);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        f(*make_host_groups(make_mesh(world, rank, shard_size), loopback.end(rank), options));
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
        loopback.abandon(rank);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::vector<float> values_of(int rank, int64_t count) {
  Random random(5, RandomUse::kTest, static_cast<uint64_t>(rank), 0);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

// ((x0 + x1) + x2) + ...
std::vector<float> ordered_sum(const std::vector<int>& ranks, int64_t count) {
  std::vector<float> sum = values_of(ranks.front(), count);
  for (size_t r = 1; r < ranks.size(); ++r) {
    const std::vector<float> term = values_of(ranks[r], count);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
  }
  return sum;
}

TEST(Collectives, SumsAreTakenInRankOrder) {
  for (const int world : {1, 2, 3, 4}) {
    for (const int64_t count : {0, 1, 7, 64, 1000}) {
      on_ranks(world, world,
               [&](const Groups& g) {
                 const std::vector<float> want =
                     ordered_sum(g.mesh.members(Axis::kShard), count * world);
                 std::vector<float> all = values_of(g.mesh.rank, count * world),
                                    part(static_cast<size_t>(count));
                 g.shard->reduce_scatter(all.data(), part.data(), count, {}, nullptr);
                 for (int64_t i = 0; i < count; ++i) {
                   ASSERT_EQ(part[static_cast<size_t>(i)],
                             want[static_cast<size_t>(g.mesh.rank * count + i)]);
                 }
                 g.shard->all_reduce(all.data(), all.data(), std::ssize(all), {}, nullptr);
                 ASSERT_EQ(all, want);
                 std::vector<float> gathered(want.size());
                 g.shard->all_gather(part.data(), gathered.data(), count * int64_t{sizeof(float)},
                                     nullptr);
                 ASSERT_EQ(gathered, want);
               },
               {.bucket_bytes = 256});  // several rounds
    }
  }
}

TEST(Collectives, BucketsChangeNoBit) {
  std::vector<std::vector<float>> results;
  for (const int64_t bucket : {64, 1024, 1 << 20}) {
    std::vector<float> result;
    on_ranks(4, 4,
             [&](const Groups& g) {
               std::vector<float> x = values_of(g.mesh.rank, 1013);
               g.world->all_reduce(x.data(), x.data(), 1013, {}, nullptr);
               if (g.mesh.rank == 2) result = x;
             },
             {.bucket_bytes = bucket});
    results.push_back(result);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Each term is rounded to bf16 once (2^-8 of it at most), the sum once more; the additions are in
// float32, whose rounding is 2^-16 of that: one per cent is more than enough for it.
TEST(Collectives, Bf16OnTheWireRoundsTermsAndSum) {
  on_ranks(4, 4, [&](const Groups& g) {
    constexpr int64_t kCount = 257;
    const Reduction reduction{.dtype = DType::kF32, .wire = DType::kBF16};
    std::vector<float> x = values_of(g.mesh.rank, kCount), magnitude(kCount);
    const std::vector<float> want = ordered_sum({0, 1, 2, 3}, kCount);
    for (int r = 0; r < 4; ++r) {
      const std::vector<float> term = values_of(r, kCount);
      for (size_t i = 0; i < term.size(); ++i) magnitude[i] += std::abs(term[i]);
    }
    g.world->all_reduce(x.data(), x.data(), kCount, reduction, nullptr);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x[i], want[i], 0x1p-8f * 1.01f * (magnitude[i] + std::abs(want[i]))) << i;
      EXPECT_EQ(x[i], bf16_to_float(float_to_bf16(x[i])));
    }
  });
}

TEST(Collectives, GroupsOfAHybridMesh) {
  on_ranks(4, 2, [&](const Groups& g) {
    for (const Axis axis : {Axis::kWorld, Axis::kShard, Axis::kReplica}) {
      std::vector<float> x = values_of(g.mesh.rank, 33);
      g.on(axis).all_reduce(x.data(), x.data(), 33, {}, nullptr);
      EXPECT_EQ(x, ordered_sum(g.mesh.members(axis), 33)) << name(axis);
      int token = g.mesh.rank;
      g.on(axis).broadcast(&token, sizeof token, g.on(axis).size() - 1, nullptr);
      EXPECT_EQ(token, g.mesh.members(axis).back());
    }
    g.world->barrier();
    EXPECT_EQ(g.world->stats().calls, 3);
  });
}

TEST(Collectives, ReceivedBytesAreThoseOfTheCostModel) {
  on_ranks(4, 4, [&](const Groups& g) {
    std::vector<float> x(400), part(100);
    g.shard->all_gather(part.data(), x.data(), 400, nullptr);
    EXPECT_EQ(g.shard->stats().bytes_received, 1200);
    g.shard->reduce_scatter(x.data(), part.data(), 100, {}, nullptr);
    EXPECT_EQ(g.shard->stats().bytes_received, 2400);
    g.shard->all_reduce(x.data(), x.data(), 400, {}, nullptr);
    EXPECT_EQ(g.shard->stats().bytes_received, 4800);
  });
}

TEST(Collectives, OtherSizesOnAnotherRankAreAnError) {
  EXPECT_THROW(on_ranks(2, 2,
                        [&](const Groups& g) {
                          std::vector<float> x(64);
                          g.world->all_gather(x.data(), x.data() + 8 * g.mesh.rank,
                                              4 + 4 * g.mesh.rank, nullptr);
                        }),
               CommError);
}

TEST(Collectives, ARankThatLeavesFreesTheOthers) {
  EXPECT_THROW(on_ranks(3, 3,
                        [&](const Groups& g) {
                          if (g.mesh.rank == 1) throw CommError({.where = "test", .what = "left"});
                          g.world->barrier();
                        }),
               CommError);
}

TEST(Mesh, NeighboursMakeAShardGroup) {
  const Mesh mesh = make_mesh(8, 6, 4);
  EXPECT_EQ(mesh.members(Axis::kShard), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(mesh.members(Axis::kReplica), (std::vector<int>{2, 6}));
  EXPECT_EQ(mesh.coordinate(Axis::kShard), 2);
  EXPECT_EQ(mesh.coordinate(Axis::kReplica), 1);
  EXPECT_THROW(make_mesh(8, 0, 3), ConfigError);
}

Launch launch_of(const std::map<std::string, std::string>& variables, bool with_mpi = true) {
  return detect_launch(
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      with_mpi);
}

TEST(Launch, NothingMeansAlone) {
  const Launch launch = launch_of({});
  EXPECT_EQ(launch.carrier, Launch::Carrier::kNone);
  EXPECT_EQ(launch.size, 1);
}

TEST(Launch, TorchrunVariables) {
  const Launch launch = launch_of({{"RANK", "3"},
                                   {"WORLD_SIZE", "4"},
                                   {"LOCAL_RANK", "1"},
                                   {"MASTER_ADDR", "node7"},
                                   {"MASTER_PORT", "29500"}});
  EXPECT_EQ(launch.carrier, Launch::Carrier::kSockets);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.host, "node7");
  EXPECT_EQ(launch.port, 29500);
  EXPECT_THROW(launch_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), ConfigError);
  EXPECT_THROW(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), ConfigError);  // nowhere to meet
  EXPECT_THROW(launch_of({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), ConfigError);
  EXPECT_THROW(
      launch_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "0"}}),
      ConfigError);
  EXPECT_EQ(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).carrier, Launch::Carrier::kNone);
}

TEST(Launch, Mpirun) {
  const std::map<std::string, std::string> variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                                                        {"OMPI_COMM_WORLD_SIZE", "2"},
                                                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
  EXPECT_EQ(launch_of(variables).carrier, Launch::Carrier::kMpi);
  EXPECT_EQ(launch_of(variables).local_rank, 1);
  EXPECT_THROW(launch_of(variables, /*with_mpi=*/false), ConfigError);
  std::map<std::string, std::string> with_address = variables;
  with_address["MASTER_ADDR"] = "127.0.0.1";
  with_address["MASTER_PORT"] = "5000";
  EXPECT_EQ(launch_of(with_address, false).carrier, Launch::Carrier::kSockets);
}

TEST(Launch, Slurm) {
  std::map<std::string, std::string> variables = {{"SLURM_PROCID", "5"},
                                                  {"SLURM_STEP_NUM_TASKS", "8"},
                                                  {"SLURM_LOCALID", "1"},
                                                  {"SLURM_STEP_NODELIST", "gpu[03-04],gpu9"},
                                                  {"SLURM_JOB_ID", "41"}};
  const Launch launch = launch_of(variables);
  EXPECT_EQ(launch.carrier, Launch::Carrier::kSockets);
  EXPECT_EQ(launch.host, "gpu03");
  EXPECT_EQ(launch.port, 20041);
  EXPECT_EQ(launch.rank, 5);
  variables["PMIX_RANK"] = "5";
  EXPECT_EQ(launch_of(variables).carrier, Launch::Carrier::kMpi);
  // A batch script outside srun has no step.
  variables.erase("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(launch_of(variables).carrier, Launch::Carrier::kNone);
}

}  // namespace
}  // namespace wam::dist
