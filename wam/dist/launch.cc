#include "wam/dist/launch.h"

#include <charconv>
#include <cstdlib>

#include "wam/base/error.h"

namespace wam::dist {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& what, const std::string& got,
                       const std::string& expected, const std::string& remedy) {
  throw ConfigError(
      {.where = where, .what = what, .got = got, .expected = expected, .remedy = remedy});
}

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool has(const std::string& name) const { return environment_(name).has_value(); }
  std::string text(const std::string& name) const { return environment_(name).value_or(""); }

  int number(const std::string& name, int low, int high) const {
    const std::string value = text(name);
    int result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc{} || end != value.data() + value.size() || result < low ||
        result > high) {
      fail("environment variable " + name, "is no number in range", "'" + value + "'",
           std::to_string(low) + " to " + std::to_string(high),
           "Start through mpirun, srun or a launcher that sets it, or unset it.");
    }
    return result;
  }
  int number_or(const std::string& name, int low, int high, int otherwise) const {
    return has(name) ? number(name, low, high) : otherwise;
  }

 private:
  const Environment& environment_;
};

constexpr int kMaxRanks = 1 << 16;

void read_place(const Reader& env, Launch& launch, const std::string& rank, const std::string& size,
                const std::string& local) {
  launch.size = env.number(size, 1, kMaxRanks);
  launch.rank = env.number(rank, 0, launch.size - 1);
  launch.local_rank = env.number_or(local, 0, kMaxRanks, 0);
}

void read_meeting_point(const Reader& env, Launch& launch) {
  launch.carrier = Launch::Carrier::kSockets;
  launch.host = env.text("MASTER_ADDR");
  launch.port = env.number("MASTER_PORT", 1, 65535);
}

// The first name of a Slurm list: "node[03-07,12],other" -> "node03".
std::string first_host(const std::string& list) {
  const size_t end = list.find_first_of(",[");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const size_t number = list.find_first_of(",-]", end + 1);
  return list.substr(0, end) + list.substr(end + 1, number - end - 1);
}

// Of a Slurm job step without MPI. Jobs of one machine must not meet each other.
void read_slurm_meeting_point(const Reader& env, Launch& launch) {
  constexpr int kFirstPort = 20000, kPorts = 20000;
  launch.carrier = Launch::Carrier::kSockets;
  launch.host = env.has("MASTER_ADDR") ? env.text("MASTER_ADDR")
                                       : first_host(env.text("SLURM_STEP_NODELIST"));
  if (launch.host.empty()) launch.host = "127.0.0.1";
  const int job = env.number_or("SLURM_JOB_ID", 0, 2'147'483'647, 0);
  launch.port = env.number_or("MASTER_PORT", 1, 65535, kFirstPort + job % kPorts);
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Launch detect_launch(const Environment& environment, bool with_mpi) {
  const Reader env(environment);
  Launch launch{.by = "alone"};
  const bool mpirun = env.has("OMPI_COMM_WORLD_SIZE"),
             hydra = env.has("PMI_SIZE") && env.has("PMI_RANK");
  const bool torch = env.has("RANK") && env.has("WORLD_SIZE");
  const bool srun = env.has("SLURM_PROCID") && env.has("SLURM_STEP_NUM_TASKS");
  if (torch && !mpirun && !hydra) {
    launch.by = "RANK and WORLD_SIZE";
    read_place(env, launch, "RANK", "WORLD_SIZE", "LOCAL_RANK");
    if (launch.size == 1) return launch;
    if (!env.has("MASTER_ADDR") || !env.has("MASTER_PORT")) {
      fail("environment", "RANK and WORLD_SIZE are set, but not where the ranks meet", "",
           "MASTER_ADDR and MASTER_PORT",
           "Set both, the same for all ranks, or unset RANK and WORLD_SIZE.");
    }
    read_meeting_point(env, launch);
  } else if (mpirun || hydra) {
    launch.by = "mpirun";
    if (mpirun) {
      read_place(env, launch, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                 "OMPI_COMM_WORLD_LOCAL_RANK");
    } else {
      read_place(env, launch, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID");
    }
    if (with_mpi) {
      launch.carrier = Launch::Carrier::kMpi;
    } else if (launch.size > 1 && env.has("MASTER_ADDR") && env.has("MASTER_PORT")) {
      read_meeting_point(env, launch);
    } else if (launch.size > 1) {
      fail("environment", "mpirun starts several ranks, but this binary was built without MPI",
           std::to_string(launch.size) + " ranks",
           "MASTER_ADDR and MASTER_PORT, or a build with MPI",
           "Set both (mpirun -x), or build with -DWAM_MPI=ON.");
    }
  } else if (srun) {
    launch.by = "srun";
    read_place(env, launch, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID");
    if (launch.size == 1) return launch;
    if (with_mpi && (env.has("PMIX_RANK") || env.has("PMI_RANK"))) {
      launch.carrier = Launch::Carrier::kMpi;
    } else {
      read_slurm_meeting_point(env, launch);
    }
  }
  return launch;
}

}  // namespace wam::dist
