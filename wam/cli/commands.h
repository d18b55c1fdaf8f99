// Subcommands of the wam binary; each adds itself to the parser. A command's work happens in the
// callback, throws wam::Error, and returns through `exit_code` if it is not 0.
#pragma once

namespace CLI {
class App;
}

namespace wam::cli {

// Declared for every command whose source is compiled in: void add_<command>(CLI::App&, int&).
#define WAM_COMMAND(name) void add_##name(CLI::App& app, int& exit_code);
#include "wam/cli/command_list.inc"
#undef WAM_COMMAND

}  // namespace wam::cli
