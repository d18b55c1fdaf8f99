#include "wam/dist/process_testing.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "wam/base/files.h"
#include "wam/dist/socket.h"

namespace wam::dist {

std::string Process::out() const { return read_text_file(out_path); }
std::string Process::err() const { return read_text_file(err_path); }

int Process::wait(double seconds) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Process start(const std::filesystem::path& folder, const std::string& name,
              const std::vector<std::string>& command, const Variables& variables) {
  Process process;
  process.out_path = folder / (name + ".out");
  process.err_path = folder / (name + ".err");
  process.pid = fork();
  if (process.pid != 0) return process;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const auto& [key, value] : variables) setenv(key.c_str(), value.c_str(), 1);
  if (freopen(process.out_path.c_str(), "w", stdout) == nullptr) _exit(126);
  if (freopen(process.err_path.c_str(), "w", stderr) == nullptr) _exit(126);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

int free_port() { return listen_on(0).port; }

std::vector<Process> start_world(const std::filesystem::path& folder, int size,
                                 const std::vector<std::string>& command,
                                 const Variables& variables) {
  const std::string port = std::to_string(free_port());
  std::vector<Process> ranks;
  for (int r = 0; r < size; ++r) {
    Variables all = {{"RANK", std::to_string(r)},
                     {"WORLD_SIZE", std::to_string(size)},
                     {"LOCAL_RANK", std::to_string(r)},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", port},
                     {"OMP_NUM_THREADS", "1"}};
    for (const auto& [key, value] : variables) all[key] = value;
    ranks.push_back(start(folder, "rank" + std::to_string(r), command, all));
  }
  return ranks;
}

bool has_mpirun() { return std::system("command -v mpirun > /dev/null") == 0; }

std::vector<std::string> mpirun(int ranks, const std::vector<std::string>& command) {
  std::vector<std::string> words = {
      "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
      "-n",     std::to_string(ranks)};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace wam::dist
