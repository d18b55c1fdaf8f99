// For tests: processes that a launcher would start.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace wam::dist {

struct Process {
  pid_t pid = -1;
  std::filesystem::path out_path, err_path;
  std::string out() const;
  std::string err() const;
  // Exit code, 128 + signal, or -1 if it still runs after `seconds` (it is then killed).
  int wait(double seconds) const;
};

using Variables = std::map<std::string, std::string>;

// Its output goes to NAME.out and NAME.err in `folder`. It dies with the test.
Process start(const std::filesystem::path& folder, const std::string& name,
              const std::vector<std::string>& command, const Variables& variables);
// One process a rank with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT: rank0, rank1,
// ...
std::vector<Process> start_world(const std::filesystem::path& folder, int size,
                                 const std::vector<std::string>& command,
                                 const Variables& variables = {});
int free_port();
bool has_mpirun();
// mpirun for `ranks` processes on this machine, also as root and on fewer cores.
std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& command);

}  // namespace wam::dist
