// A process for tests of worlds: joins as the environment says and does what its argument says.
//   sums          prints hashes of collectives' results, then leaves
//   step SECONDS  exchanges until it ends, or something ends it; prints "step N" now and then
//   report        rank 1 reports an error after a few exchanges
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "wam/base/error.h"
#include "wam/base/hash.h"
#include "wam/dist/mpi.h"
#include "wam/dist/world.h"

namespace {

using namespace wam;

uint64_t hash_of(const std::vector<float>& x) { return hash64(std::as_bytes(std::span(x))); }

void sums(dist::World& world) {
  const auto groups =
      dist::make_host_groups(dist::make_mesh(world.size(), world.rank(), 1), world.transport());
  std::vector<float> x(100'003);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(world.rank() + 1) / static_cast<float>(3 * i + 7);
  }
  groups->world->all_reduce(x.data(), x.data(), std::ssize(x), {}, nullptr);
  std::string names;
  for (const std::string& text : world.gather("r" + std::to_string(world.rank()))) names += text;
  fmt::print("rank {} of {}: {:016x} {}\n", world.rank(), world.size(), hash_of(x), names);
}

void step(dist::World& world, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<float> x(1000);
  for (int64_t n = 1;; ++n) {
    world.progress().enter("forward and backward", n);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const std::vector<double> all = world.gather(std::vector<double>{elapsed});
    world.host().all_reduce(x.data(), x.data(), std::ssize(x), {}, nullptr);
    if (n == 20) {
      fmt::print("pid {} rank {}\n", getpid(), world.rank());
      std::fflush(stdout);
    }
    if (all[0] > seconds) return;
  }
}

void report(dist::World& world) {
  for (int64_t n = 1;; ++n) {
    world.progress().enter("loading", n);
    if (n == 10 && world.rank() == 1) {
      throw DataError({.where = "episode 7", .what = "is damaged", .remedy = "Remove it."});
    }
    world.barrier();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "sums";
  const double silence =
      std::getenv("PROBE_SILENCE") != nullptr ? std::atof(std::getenv("PROBE_SILENCE")) : 5;
  std::shared_ptr<dist::World> world;
  try {
    world = dist::World::join(dist::detect_launch(dist::process_environment(), dist::has_mpi()),
                              {.meet_seconds = 10, .watchdog = {.silence_seconds = silence}});
    if (what == "sums") sums(*world);
    if (what == "step") step(*world, std::atof(argv[2]));
    if (what == "report") report(*world);
    world->leave();
  } catch (const Error& error) {
    if (world) world->report(error);
    std::fprintf(stderr, "wam: %s\n", error.what());
    std::fflush(stdout);
    _exit(error.exit_code());
  }
}
