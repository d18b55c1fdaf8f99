// wam plan CONFIG: bytes by category and FLOPs of the run's programs, without running anything.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "wam/cli/commands.h"
#include "wam/train/config.h"
#include "wam/train/device.h"
#include "wam/train/layouts.h"
#include "wam/train/micro_batches.h"
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

// The run as it is, and beside it the same steps in other micro-batches.
void plan_on_card(const PlanArgs& args) {
  const train::Card& card = train::find_card("wam plan --gpu", args.gpu);
  train::TrainConfig config = train::load_config(args.config, args.overrides);
  if (!train::is_cuda(config.device)) {
    // Read again: the types that a GPU computes in are another default.
    std::vector<std::string> overrides = args.overrides;
    overrides.emplace_back("device=cuda");
    config = train::load_config(args.config, overrides);
  }
  const train::MemoryLimit limit{card.free_bytes - train::kDeviceReserve, card.name};
  const std::vector<train::MicroBatchChoice> choices = train::compare_micro_batches(config, card);
  fmt::print("{}", train::describe(choices, card));
  fmt::print("\nwith micro_batch_size: {}\n{}", config.micro_batch_size,
             train::describe(train::plan_run(config, {.limit = limit})));
}

void run_plan(const PlanArgs& args) {
  const train::TrainConfig config = train::load_config(args.config, args.overrides);
  if (args.cluster.ranks != 0) {
    train::Cluster cluster = args.cluster;
    cluster.memory_bytes = static_cast<int64_t>(1e9 * args.memory_gb);
    fmt::print("{}", train::describe(train::compare_layouts(config, cluster, args.largest), cluster));
    return;
  }
  if (!args.gpu.empty()) return plan_on_card(args);
  fmt::print("{}", train::describe(train::plan_run(config)));
}

}  // namespace

void add_plan(CLI::App& app, int&) {
  auto args = std::make_shared<PlanArgs>();
  CLI::App* command = app.add_subcommand("plan", "Print memory by category and FLOPs of a run");
  command->add_option("config", args->config, "YAML file")->required();
  command->add_option("--gpu", args->gpu, "h200 or h100: must fit its memory; memory and time of each micro-batch size");
  command->add_option("overrides", args->overrides, "key=value");
  command->add_option("--ranks", args->cluster.ranks, "compare the strategies for so many ranks");
  command->add_option("--nodes", args->cluster.nodes, "on so many machines");
  command->add_option("--memory", args->memory_gb, "GB that a rank may take; 0: no limit");
  command->add_flag("--largest", args->largest, "with the largest micro-batch that fits, one a rank");
  command->callback([args] { run_plan(*args); });
}

}  // namespace wam::cli
