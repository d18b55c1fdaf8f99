// wam inspect PATH: what a checkpoint is, what it holds, and which configuration it fits.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "wam/cli/commands.h"
#include "wam/train/checkpoint_report.h"

namespace wam::cli {
namespace {

struct InspectArgs {
  std::string path;
  train::InspectOptions options;
  bool summary = false, no_hashes = false;
};

void run_inspect(InspectArgs& args) {
  args.options.has_names = !args.summary;
  args.options.has_hashes = !args.no_hashes;
  fmt::print("{}", train::inspect_checkpoint(args.path, args.options));
}

}  // namespace

void add_inspect(CLI::App& app, int&) {
  auto args = std::make_shared<InspectArgs>();
  CLI::App* command =
      app.add_subcommand("inspect", "Say what a checkpoint holds and which configuration it fits");
  command->add_option("path", args->path, "folder of a model or checkpoint, or a weights file")
      ->required();
  command->add_option("--config", args->options.config,
                      "a run's YAML to hold it against; else the published models");
  command->add_flag("--summary", args->summary, "leave out the list of tensors");
  command->add_flag("--no-hashes", args->no_hashes, "do not read the values");
  command->callback([args] { run_inspect(*args); });
}

}  // namespace wam::cli
