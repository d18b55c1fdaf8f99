// Subcommands of `wam data`, one source each.
#pragma once

namespace CLI {
class App;
}

namespace wam::cli {

void add_data_repack(CLI::App& data);

}  // namespace wam::cli
