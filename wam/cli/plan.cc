// wam plan CONFIG: bytes by category and FLOPs of the run's programs, without running anything.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "wam/base/strings.h"
#include "wam/cli/commands.h"
#include "wam/train/config.h"
#include "wam/train/layouts.h"
#include "wam/train/run_plan.h"

namespace wam::cli {
namespace {

struct PlanArgs {
  std::string config;
  std::vector<std::string> overrides;
  train::Cluster cluster{.ranks = 0};
  double memory_gb = 0;
  bool largest = false;
};

void run_plan(const PlanArgs& args) {
  const train::TrainConfig config = train::load_config(args.config, args.overrides);
  if (args.cluster.ranks != 0) {
    train::Cluster cluster = args.cluster;
    cluster.memory_bytes = static_cast<int64_t>(1e9 * args.memory_gb);
    fmt::print("{}", train::describe(train::compare_layouts(config, cluster, args.largest), cluster));
    return;
  }
  const train::RunPlan plan = train::plan_run(config);
  fmt::print("{}", train::describe(plan));
}

}  // namespace

void add_plan(CLI::App& app, int&) {
  auto args = std::make_shared<PlanArgs>();
  CLI::App* command = app.add_subcommand("plan", "Print memory by category and FLOPs of a run");
  command->add_option("config", args->config, "YAML file")->required();
  command->add_option("overrides", args->overrides, "key=value");
  command->add_option("--ranks", args->cluster.ranks, "compare the strategies for so many ranks");
  command->add_option("--nodes", args->cluster.nodes, "on so many machines");
  command->add_option("--memory", args->memory_gb, "GB that a rank may take; 0: no limit");
  command->add_flag("--largest", args->largest, "with the largest micro-batch that fits, one a rank");
  command->callback([args] { run_plan(*args); });
}

}  // namespace wam::cli
