// wam data ...: what is in a dataset, and the same in another form.
#include <CLI/CLI.hpp>

#include "wam/cli/commands.h"
#include "wam/cli/data_commands.h"

namespace wam::cli {

void add_data(CLI::App& app, int& exit_code) {
  CLI::App* data = app.add_subcommand("data", "Look at datasets, and write them in another form");
  data->require_subcommand(1);
  add_data_diff(*data, exit_code);
  add_data_info(*data);
  add_data_repack(*data);
  add_data_show(*data);
}

}  // namespace wam::cli
