// wam demo: the main job on the built-in world: collect, train, evaluate, and a page to look at.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>

#include "wam/base/log.h"
#include "wam/cli/commands.h"
#include "wam/sim/collect.h"
#include "wam/train/eval_report.h"
#include "wam/train/evaluation.h"
#include "wam/train/trainer.h"

namespace wam::cli {
namespace {

struct DemoArgs {
  std::string config = "configs/demo.yaml";
  std::filesystem::path out = "runs/demo";
  int64_t episodes = 200, windows = 16;
  std::vector<std::string> overrides;
};

void collect(const DemoArgs& args) {
  sim::CollectOptions options;
  options.path = args.out / "dataset";
  options.episodes = args.episodes;
  options.world.view_size = 32;
  const sim::CollectReport report = sim::collect(options, [](const sim::CollectProgress& p) {
    if (p.episodes_done % 20 == 0) fmt::print("  collected {}/{} episodes\n", p.episodes_done, p.episodes);
  });
  fmt::print("{} {} episodes, {} frames in {}\n", report.reused ? "reused" : "collected", report.episodes,
             report.frames, options.path.string());
}

train::TrainResult run_training(const DemoArgs& args) {
  train::TrainConfig config = train::load_config(args.config, args.overrides);
  config.run_dir = (args.out / "train").string();
  config.dataset.path = (args.out / "dataset").string();
  // A demo that was stopped goes on; one that was finished trains no step more.
  const bool resume = std::filesystem::exists(std::filesystem::path(config.run_dir) / "checkpoints");
  train::Trainer trainer(config, {.resume = resume, .command_line = "wam demo"});
  return trainer.run();
}

train::EvalResult evaluate(const DemoArgs& args, const std::string& checkpoint, bool untrained) {
  train::EvalOptions options{.checkpoint = checkpoint, .windows = args.windows, .untrained = untrained};
  return train::evaluate(options);
}

double mean_error(const train::EvalResult& r) {
  double sum = 0;
  for (const double e : r.error) sum += e / static_cast<double>(r.error.size());
  return sum;
}

void run_demo(const DemoArgs& args) {
  fmt::print("1/3 the built-in robot world\n");
  collect(args);
  fmt::print("2/3 training\n");
  const train::TrainResult result = run_training(args);
  if (result.interrupted) return;
  fmt::print("training loss {:.4f} -> {:.4f}, held out {:.4f} -> {:.4f}\n", result.first.loss,
             result.last.loss, result.first_validation_loss, result.last_validation_loss);
  fmt::print("3/3 evaluation on held-out episodes\n");
  const train::EvalResult trained = evaluate(args, result.checkpoint, false);
  const train::EvalResult untrained = evaluate(args, result.checkpoint, true);
  fmt::print("{}action error {:.4f}; untrained model {:.4f}; mean action's share {:.3f}\n",
             train::describe(trained), mean_error(trained), mean_error(untrained), trained.relative_error);
  train::HtmlReport page("wam demo");
  page.add_heading("Training");
  train::add_run_curves(page, args.out / "train");
  page.add_heading("Held-out windows");
  train::add_eval(page, trained);
  page.write(args.out / "index.html");
  fmt::print("page {}\n", (args.out / "index.html").string());
}

}  // namespace

void add_demo(CLI::App& app, int&) {
  auto args = std::make_shared<DemoArgs>();
  CLI::App* command = app.add_subcommand("demo", "Collect, train and evaluate on the built-in world");
  command->add_option("--config", args->config, "YAML file")->capture_default_str();
  command->add_option("--out", args->out, "folder of the results")->capture_default_str();
  command->add_option("--episodes", args->episodes, "episodes to collect")->capture_default_str();
  command->add_option("--windows", args->windows, "held-out windows to evaluate")->capture_default_str();
  command->add_option("overrides", args->overrides, "key=value for the training");
  command->callback([args] { run_demo(*args); });
}

}  // namespace wam::cli
