// wam plan CONFIG: bytes by category and FLOPs of the run's programs, without running anything.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "wam/base/strings.h"
#include "wam/cli/commands.h"
#include "wam/train/config.h"
#include "wam/train/run_plan.h"

namespace wam::cli {
namespace {

struct PlanArgs {
  std::string config;
  std::vector<std::string> overrides;
};

void run_plan(const PlanArgs& args) {
  const train::TrainConfig config = train::load_config(args.config, args.overrides);
  const train::RunPlan plan = train::plan_run(config);
  fmt::print("{}", train::describe(plan));
}

}  // namespace

void add_plan(CLI::App& app, int&) {
  auto args = std::make_shared<PlanArgs>();
  CLI::App* command = app.add_subcommand("plan", "Print memory by category and FLOPs of a run");
  command->add_option("config", args->config, "YAML file")->required();
  command->add_option("overrides", args->overrides, "key=value");
  command->callback([args] { run_plan(*args); });
}

}  // namespace wam::cli
