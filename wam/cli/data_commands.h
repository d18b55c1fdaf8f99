// Subcommands of `wam data`, one source each.
#pragma once

namespace CLI {
class App;
}

namespace wam::cli {

// Through `exit_code` a command returns what is not 0.
void add_data_diff(CLI::App& data, int& exit_code);
void add_data_info(CLI::App& data);
void add_data_repack(CLI::App& data);
void add_data_show(CLI::App& data);

}  // namespace wam::cli
