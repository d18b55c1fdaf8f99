// wam sim collect PATH: demonstrations of the built-in world as a LeRobot v2.1 dataset.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "wam/cli/commands.h"
#include "wam/sim/collect.h"

namespace wam::cli {
namespace {

void run_collect(const sim::CollectOptions& options) {
  const sim::CollectReport report = sim::collect(options, [](const sim::CollectProgress& p) {
    if (p.episodes_done % 10 == 0 || p.episodes_done == p.episodes) {
      fmt::print("\rcollected {}/{} episodes, {} frames", p.episodes_done, p.episodes, p.frames);
      std::fflush(stdout);
    }
  });
  fmt::print("{}{}: {} episodes, {} frames, {} tasks, {}\n", report.reused ? "reused " : "\nwrote ",
             options.path.string(), report.episodes, report.frames, report.tasks, report.codec);
}

}  // namespace

void add_sim(CLI::App& app, int&) {
  CLI::App* sim = app.add_subcommand("sim", "The built-in robot world");
  sim->require_subcommand(1);
  auto options = std::make_shared<sim::CollectOptions>();
  CLI::App* collect = sim->add_subcommand("collect", "Record demonstrations as a LeRobot v2.1 dataset");
  collect->add_option("path", options->path, "folder of the dataset")->required();
  collect->add_option("--episodes", options->episodes, "number of episodes")->capture_default_str();
  collect->add_option("--seed", options->seed, "seed of the first episode")->capture_default_str();
  collect->add_option("--view-size", options->world.view_size, "pixels of a view's side")
      ->capture_default_str();
  collect->add_option("--codec", options->codec, "video codec")->capture_default_str();
  collect->add_option("--gop", options->gop, "frames from key frame to key frame")->capture_default_str();
  collect->add_option("--crf", options->crf, "video quality, low is better")->capture_default_str();
  collect->callback([options] { run_collect(*options); });
}

}  // namespace wam::cli
