// wam sim collect PATH: demonstrations of the built-in world as a LeRobot v2.1 dataset.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "wam/cli/commands.h"
#include "wam/cli/progress.h"
#include "wam/cli/usage.h"
#include "wam/sim/collect.h"

namespace wam::cli {
namespace {

void run_collect(const sim::CollectOptions& options) {
  sim::CollectReport report;
  {
    ProgressLine line("collecting", "episodes");
    report = sim::collect(options, [&line](const sim::CollectProgress& progress) {
      line.update(progress.episodes_done, progress.episodes);
    });
  }
  fmt::print("{} {}: {} episodes, {} frames, {} tasks, {} video\n",
             report.reused ? "reused, as it holds this very collection already:" : "wrote",
             options.path.string(), report.episodes, report.frames, report.tasks, report.codec);
}

void add_collect(CLI::App& sim) {
  auto options = std::make_shared<sim::CollectOptions>();
  CLI::App* command =
      sim.add_subcommand("collect", "Record demonstrations as a LeRobot v2.1 dataset");
  const auto add = [&](const char* name, auto& value, const char* help) {
    CLI::Option* option = command->add_option(name, value, help)->capture_default_str();
    if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      option->check(check_not_negative);
    }
  };
  command->add_option("path", options->path, "folder of the dataset")->required();
  add("--episodes", options->episodes, "number of episodes");
  add("--seed", options->seed, "seed of the collection");
  add("--view-size", options->world.view_size, "pixels of a view's side; even");
  add("--fps", options->world.fps, "steps a second");
  add("--blocks", options->world.num_blocks, "coloured blocks on the table");
  add("--max-speed", options->world.max_speed, "of the gripper, table widths a second");
  add("--speed", options->expert.cruise_speed, "of the demonstrator, table widths a second");
  add("--noise", options->expert.noise, "of the demonstrator's velocity, over the speed");
  add("--codec", options->codec, "video codec");
  add("--gop", options->gop, "frames from key frame to key frame");
  add("--crf", options->crf, "video quality, 0 to 51; low is better");
  command->callback([options] { run_collect(*options); });
}

}  // namespace

void add_sim(CLI::App& app, int&) {
  CLI::App* sim = app.add_subcommand("sim", "The built-in robot world");
  sim->require_subcommand(1);
  add_collect(*sim);
}

}  // namespace wam::cli
