// Which rank of how many this process is, by what started it: mpirun, srun, or anything that sets
// the variables RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace wam::dist {

struct Launch {
  enum class Carrier { kNone, kMpi, kSockets };
  Carrier carrier = Carrier::kNone;  // kNone: one process
  int rank = 0, size = 1, local_rank = 0;
  std::string host;  // kSockets: where rank 0 is met
  int port = 0;
  std::string by;  // "mpirun", "srun", "RANK and WORLD_SIZE", "alone"
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// `with_mpi`: the build has it. Throws ConfigError for variables that contradict each other or are
// no numbers, or if ranks could not meet.
Launch detect_launch(const Environment& environment, bool with_mpi);

}  // namespace wam::dist
