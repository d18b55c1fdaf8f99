// wam: trains world action models. Errors become one line on stderr and an exit code (base/error.h).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "wam/base/error.h"
#include "wam/cli/commands.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("wam trains world action models: video and actions from one transformer.");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  int exit_code = 0;
  wam::cli::add_bench(app, exit_code);
  wam::cli::add_demo(app, exit_code);
  wam::cli::add_eval(app, exit_code);
  wam::cli::add_ops(app, exit_code);
  wam::cli::add_plan(app, exit_code);
  wam::cli::add_sim(app, exit_code);
  wam::cli::add_stats(app, exit_code);
  wam::cli::add_train(app, exit_code);
  wam::cli::add_validate(app, exit_code);
  wam::cli::add_version(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
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
