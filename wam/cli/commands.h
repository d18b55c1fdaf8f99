// Subcommands of the wam binary; each adds itself to the parser. A command's work happens in the
// callback, throws wam::Error, and returns through `exit_code` if it is not 0.
#pragma once

namespace CLI {
class App;
}

namespace wam::cli {

void add_plan(CLI::App& app, int& exit_code);
void add_train(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_stats(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);
void add_sim(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_demo(CLI::App& app, int& exit_code);
void add_ops(CLI::App& app, int& exit_code);
void add_version(CLI::App& app, int& exit_code);

}  // namespace wam::cli
