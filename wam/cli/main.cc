// wam: trains world action models. Errors become one line on stderr and an exit code (base/error.h).
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "wam/base/error.h"
#include "wam/cli/commands.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("wam trains world action models: video and actions from one transformer.");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  int exit_code = 0;
#define WAM_COMMAND(name) wam::cli::add_##name(app, exit_code);
#include "wam/cli/command_list.inc"
#undef WAM_COMMAND
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

// OpenMP's threads spin while they wait, unless told otherwise before the process starts; on a machine
// of few cores that takes the time the loader's threads need. Asked for once, by starting again.
void wait_passively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // on failure: go on as we are
}

int main(int argc, char** argv) {
  wait_passively(argv);
  try {
    return run(argc, argv);
  } catch (const wam::Error& error) {
    std::fprintf(stderr, "wam: %s\n", error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "wam: out of host memory. Lower micro_batch_size or prefetch_batches.\n");
    return 4;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wam: internal error: %s. This is a bug in wam.\n", error.what());
    return 70;
  }
}
