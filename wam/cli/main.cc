// wam: trains world action models. Errors become one line on stderr and an exit code
// (base/error.h).
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/cli/commands.h"
#include "wam/cli/usage.h"

namespace {

// Names and values in messages come from outside: nothing of them may start a line of its own or
// speak to the terminal.
int fail(const std::string& message, int exit_code) {
  std::string line = message;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  std::fflush(stdout);
  std::fprintf(stderr, "wam: %s\n", line.c_str());
  return exit_code;
}

// A report that did not arrive must not look like success.
void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    wam::throw_io_error("standard output", "cannot write", errno);
  }
}

int run(int argc, char** argv) {
  CLI::App app("wam trains world action models: video and actions from one transformer.", "wam");
  app.require_subcommand(1);
  int exit_code = 0;
#define WAM_COMMAND(name) wam::cli::add_##name(app, exit_code);
#include "wam/cli/command_list.inc"
#undef WAM_COMMAND
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw wam::cli::usage_error(app, error);
    app.exit(error);  // prints the help that was asked for
  }
  flush_output();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const wam::Error& error) {
    return fail(error.what(), error.exit_code());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail("[" + error.path1().string() + "] " + error.code().message() +
                    ". Check that the path exists and may be read.",
                3);
  } catch (const std::system_error& error) {
    // From the standard library and fmt: output that cannot be written, threads that cannot start.
    return fail(std::string("[system] ") + error.what() + ". Check disk space and limits.", 3);
  } catch (const std::bad_alloc&) {
    return fail("out of host memory. Lower micro_batch_size, prefetch_batches or num_workers.", 4);
  } catch (const std::exception& error) {
    return fail(std::string("internal error: ") + error.what() + ". This is a bug in wam.", 70);
  }
}
