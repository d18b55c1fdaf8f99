#include "wam/cli/bench_loader.h"

#include <fmt/format.h>

#include "wam/cli/usage.h"
#include "wam/train/loader_bench.h"

namespace wam::cli {
namespace {

struct LoaderArgs {
  std::string config = "configs/demo.yaml";
  std::vector<std::string> overrides;
  train::LoaderBenchOptions options;
  int64_t workers = 0;
  bool json = false;
};

void run_loader(const LoaderArgs& args) {
  std::vector<std::string> overrides = args.overrides;
  if (args.workers > 0) overrides.push_back("dataset.num_workers=" + std::to_string(args.workers));
  const train::LoaderBench bench =
      train::bench_loader(train::load_config(args.config, overrides), args.options);
  fmt::print("{}", args.json ? train::to_json(bench) : train::describe(bench));
}

}  // namespace

void add_bench_loader(CLI::App& bench) {
  auto args = std::make_shared<LoaderArgs>();
  CLI::App* loader = bench.add_subcommand("loader", "Reading a run's samples, without a step");
  loader->add_option("--config", args->config, "YAML file of a run")->capture_default_str();
  loader
      ->add_option("--rate", args->options.rate,
                   "samples a second that a step takes; 0: all it gets")
      ->check(check_not_negative)
      ->capture_default_str();
  loader->add_option("--seconds", args->options.seconds, "how long to measure")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  loader->add_option("--workers", args->workers, "threads; else the config's dataset.num_workers")
      ->check(check_positive);
  loader->add_flag("--json", args->json, "for scripts");
  loader->add_option("overrides", args->overrides, "key=value");
  loader->callback([args] { run_loader(*args); });
}

}  // namespace wam::cli
