// wam train CONFIG [key=value ...]
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "wam/base/log.h"
#include "wam/cli/commands.h"
#include "wam/dist/mpi.h"
#include "wam/train/trainer.h"

namespace wam::cli {
namespace {

struct TrainArgs {
  std::string config;
  std::vector<std::string> overrides;
  train::TrainOptions options;
};

std::shared_ptr<dist::World> join_world(const train::TrainConfig& config) {
  dist::WorldOptions options;
  options.watchdog.silence_seconds = config.sharding.silence_seconds;
  options.watchdog.hang_seconds = config.sharding.hang_seconds;
  const dist::Launch launch = dist::detect_launch(dist::process_environment(), dist::has_mpi());
  std::shared_ptr<dist::World> world = dist::World::join(launch, options);
  if (!world->is_first()) set_log_level(LogLevel::kWarning);
  return world;
}

int run_train(const TrainArgs& args) {
  train::TrainOptions options = args.options;
  options.command_line = "wam train " + args.config;
  for (const std::string& text : args.overrides) options.command_line += " " + text;
  const train::TrainConfig config = train::load_config(args.config, args.overrides);
  const std::shared_ptr<dist::World> world = join_world(config);
  options.world = world;
  train::TrainResult result;
  try {
    train::Trainer trainer(config, options);
    result = trainer.run();
  } catch (const std::exception& error) {
    world->report(error);
    throw;
  }
  world->leave();
  if (!world->is_first()) return 0;
  fmt::print("{} at step {}: loss {:.5f} -> {:.5f}", result.interrupted ? "interrupted" : "done",
             result.steps_done, result.first.loss, result.last.loss);
  if (!std::isnan(result.last_validation_loss)) {
    fmt::print(", held out {:.5f} -> {:.5f}", result.first_validation_loss, result.last_validation_loss);
  }
  fmt::print("\ncheckpoint {}\n", result.checkpoint.empty() ? "none" : result.checkpoint);
  return 0;
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<TrainArgs>();
  CLI::App* command = app.add_subcommand("train", "Train a model on a LeRobot dataset");
  command->add_option("config", args->config, "YAML file")->required();
  command->add_option("overrides", args->overrides, "key=value, e.g. optimizer.lr=1e-4");
  command->add_flag("--resume", args->options.resume, "continue from the run folder's newest checkpoint");
  command->add_option("--init-from", args->options.init_from, "take the weights of a checkpoint, nothing else");
  command->add_flag("--quiet", args->options.quiet, "no live line");
  command->callback([args, &exit_code] { exit_code = run_train(*args); });
}

}  // namespace wam::cli
