// wam embodiment init DATASET: a first description of a new robot, and what of it was guessed.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/cli/commands.h"
#include "wam/data/embodiment_guess.h"

namespace wam::cli {
namespace {

namespace fs = std::filesystem;

struct InitArgs {
  fs::path dataset, out = "embodiment.yaml";
  data::GuessOptions options;
  bool meta_only = false, force = false;
};

void run_init(const InitArgs& args) {
  std::error_code ignored;
  if (!args.force && fs::exists(args.out, ignored)) {
    throw ConfigError({.where = args.out.string(),
                       .what = "file exists",
                       .expected = "a new file",
                       .remedy = "Name another with --out, or add --force to replace it."});
  }
  data::GuessOptions options = args.options;
  options.read_data = !args.meta_only;
  const auto dataset = data::open_dataset(args.dataset);
  const data::EmbodimentGuess guess = data::guess_embodiment(*dataset, options);
  write_file_atomic(args.out, data::guess_file(guess, args.dataset.string()));
  fmt::print("wrote {}. Guessed, to be checked:\n", args.out.string());
  for (const std::string& note : guess.notes) fmt::print("  {}\n", note);
}

void add_init(CLI::App& embodiment) {
  auto args = std::make_shared<InitArgs>();
  CLI::App* command = embodiment.add_subcommand(
      "init", "Write a first version of a robot's description from a dataset");
  command->add_option("dataset", args->dataset, "folder of a LeRobot dataset")->required();
  command->add_option("--out", args->out, "file to write")->capture_default_str();
  command->add_flag("--force", args->force, "replace a file that exists");
  command
      ->add_option("--blocks", args->options.num_blocks,
                   "model.num_blocks: how many blocks an episode must hold")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->capture_default_str();
  command->add_flag("--meta-only", args->meta_only, "do not look at the first episode");
  command->callback([args] { run_init(*args); });
}

}  // namespace

void add_embodiment(CLI::App& app, int&) {
  CLI::App* embodiment = app.add_subcommand("embodiment", "Descriptions of robots");
  embodiment->require_subcommand(1);
  add_init(*embodiment);
}

}  // namespace wam::cli
