#include "tests/cli/run_wam.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <regex>

#include "wam/base/check.h"
#include "wam/base/files.h"
#include "wam/base/strings.h"

namespace wam::cli_test {
namespace {

constexpr int kCannotStart = 120;

void send_to_file(int descriptor, const std::string& path) {
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(kCannotStart);
  close(file);
}

void apply_limits(const RunOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives a test that is stopped
  if (options.max_file_bytes >= 0) {
    const auto bytes = static_cast<rlim_t>(options.max_file_bytes);
    const rlimit limit{bytes, bytes};
    signal(SIGXFSZ, SIG_IGN);  // the write shall fail, not the process end
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(kCannotStart);
  }
  if (options.obey_permissions && geteuid() == 0) {
    for (const int capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
      if (prctl(PR_CAPBSET_DROP, capability) != 0) _exit(kCannotStart);
    }
  }
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(kCannotStart);
}

[[noreturn]] void start(const std::vector<std::string>& arguments, const RunOptions& options,
                        const std::string& out, const std::string& err) {
  std::vector<char*> argv = {const_cast<char*>("wam")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  send_to_file(STDOUT_FILENO, out);
  send_to_file(STDERR_FILENO, err);
  apply_limits(options);
  execv(WAM_BINARY, argv.data());
  _exit(kCannotStart);
}

bool is_log_line(const std::string& line) {
  static const std::regex kLog(R"(\d\d:\d\d:\d\d (debug|info|warning|error): .*)");
  return std::regex_match(line, kLog);
}

// Lines of stderr that are no log lines.
std::vector<std::string> plain_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty() && !is_log_line(line)) lines.push_back(line);
  }
  return lines;
}

::testing::AssertionResult failure(const RunResult& result) {
  return ::testing::AssertionFailure() << "exit code " << result.exit_code << "\nstderr:\n"
                                       << result.err;
}

}  // namespace

RunResult run_wam(const std::vector<std::string>& arguments, const RunOptions& options) {
  const TempDir folder;
  const std::string out = options.output.empty() ? folder / "out" : options.output;
  const std::string err = folder / "err";
  const pid_t child = fork();
  if (child == 0) start(arguments, options, out, err);
  WAM_CHECK(child > 0) << "fork";
  int status = 0;
  while (waitpid(child, &status, 0) < 0) WAM_CHECK(errno == EINTR) << "waitpid";
  RunResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (options.output.empty()) result.out = read_text_file(out);
  result.err = read_text_file(err);
  WAM_CHECK(result.exit_code != kCannotStart) << "cannot start " << WAM_BINARY;
  return result;
}

::testing::AssertionResult is_refusal(const RunResult& result, int exit_code,
                                      const std::vector<std::string>& parts) {
  if (result.exit_code != exit_code) return failure(result) << "\nexpected " << exit_code;
  const std::vector<std::string> lines = plain_lines(result.err);
  if (lines.size() != 1) return failure(result) << "\nexpected one line";
  static const std::regex kForm(R"(wam: \[[^\]]+.*\] \S.*[.?])");
  if (!std::regex_match(lines[0], kForm))
    return failure(result) << "\nexpected wam: [place] fact. Remedy.";
  for (const char c : lines[0]) {
    if (static_cast<unsigned char>(c) < 0x20) return failure(result) << "\nspeaks to the terminal";
  }
  for (const std::string& part : parts) {
    if (lines[0].find(part) == std::string::npos) return failure(result) << "\nwithout: " << part;
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult is_success(const RunResult& result) {
  if (result.exit_code != 0) return failure(result) << "\nexpected 0";
  if (!plain_lines(result.err).empty()) return failure(result) << "\nexpected log lines only";
  return ::testing::AssertionSuccess();
}

}  // namespace wam::cli_test
