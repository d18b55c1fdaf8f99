// wam plan CONFIG: bytes by category and FLOPs of the run's programs, without running anything.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/cli/commands.h"
#include "wam/train/bench.h"
#include "wam/train/config.h"
#include "wam/train/layouts.h"
#include "wam/train/run_plan.h"

namespace wam::cli {
namespace {

struct PlanArgs {
  std::string config;
  std::vector<std::string> overrides;
  std::string gpu;
  train::Cluster cluster{.ranks = 0};
  double memory_gb = 0;
  bool largest = false;
};

// What is left of a card's memory beside the driver's own, as cudaMemGetInfo says on an empty card.
struct Card {
  const char* name;
  int64_t free_bytes;
};
constexpr Card kCards[] = {{"h200", train::kH200Bytes}, {"h100", int64_t{84'000'000'000}}};

train::MemoryLimit limit_of_card(const std::string& name) {
  std::vector<std::string> names;
  for (const Card& card : kCards) {
    if (name == card.name) return {card.free_bytes - train::kDeviceReserve, name};
    names.emplace_back(card.name);
  }
  throw ConfigError({.where = "--gpu",
                     .what = "unknown card",
                     .got = "'" + name + "'",
                     .expected = "one of " + join(names, ", "),
                     .remedy = name_hint(name, names) + "Name the card the run is to fit."});
}

void run_plan(const PlanArgs& args) {
  const train::TrainConfig config = train::load_config(args.config, args.overrides);
  if (args.cluster.ranks != 0) {
    train::Cluster cluster = args.cluster;
    cluster.memory_bytes = static_cast<int64_t>(1e9 * args.memory_gb);
    fmt::print("{}", train::describe(train::compare_layouts(config, cluster, args.largest), cluster));
    return;
  }
  train::PlanSite site;
  if (!args.gpu.empty()) site.limit = limit_of_card(args.gpu);
  const train::RunPlan plan = train::plan_run(config, site);
  fmt::print("{}", train::describe(plan));
}

}  // namespace

void add_plan(CLI::App& app, int&) {
  auto args = std::make_shared<PlanArgs>();
  CLI::App* command = app.add_subcommand("plan", "Print memory by category and FLOPs of a run");
  command->add_option("config", args->config, "YAML file")->required();
  command->add_option("--gpu", args->gpu, "h200 or h100: must fit its memory; recompute: auto fills it");
  command->add_option("overrides", args->overrides, "key=value");
  command->add_option("--ranks", args->cluster.ranks, "compare the strategies for so many ranks");
  command->add_option("--nodes", args->cluster.nodes, "on so many machines");
  command->add_option("--memory", args->memory_gb, "GB that a rank may take; 0: no limit");
  command->add_flag("--largest", args->largest, "with the largest micro-batch that fits, one a rank");
  command->callback([args] { run_plan(*args); });
}

}  // namespace wam::cli
