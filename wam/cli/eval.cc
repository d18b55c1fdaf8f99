// wam eval CHECKPOINT [DATASET]: open-loop action error on held-out windows, with a page to look at.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "wam/cli/commands.h"
#include "wam/cli/usage.h"
#include "wam/train/eval_report.h"
#include "wam/train/evaluation.h"

namespace wam::cli {
namespace {

struct EvalArgs {
  train::EvalOptions options;
  std::string page;
};

void run_eval(const EvalArgs& args) {
  const train::EvalResult result = train::evaluate(args.options);
  fmt::print("{}", train::describe(result));
  if (args.page.empty()) return;
  train::write_eval_page(result, args.page);
  fmt::print("page {}\n", args.page);
}

}  // namespace

void add_eval(CLI::App& app, int&) {
  auto args = std::make_shared<EvalArgs>();
  CLI::App* command = app.add_subcommand("eval", "Open-loop action error of a checkpoint");
  command->add_option("checkpoint", args->options.checkpoint, "checkpoint folder")->required();
  command->add_option("dataset", args->options.dataset, "dataset; default: the run's own");
  command->add_option("--source", args->options.source,
                      "name of the dataset, for a run that was trained on several");
  command->add_option("--config", args->options.config, "the run's YAML, where the checkpoint holds none");
  command->add_option("--base", args->options.base, "base model of a LoRA adapter");
  command->add_option("--windows", args->options.windows, "windows to evaluate")
      ->check(check_positive)
      ->capture_default_str();
  command->add_option("--steps", args->options.sampler.steps, "steps of the sampler")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--untrained", args->options.untrained, "weights from the seed, for comparison");
  command->add_flag("--all-episodes", args->options.all_episodes, "not only held-out episodes");
  command->add_option("--page", args->page, "write an HTML page here");
  command->callback([args] { run_eval(*args); });
}

}  // namespace wam::cli
