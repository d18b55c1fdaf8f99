// wam bench step: time of a training step by op kind, and the share outside kernels.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "wam/cli/commands.h"
#include "wam/cli/usage.h"
#include "wam/train/bench.h"

namespace wam::cli {
namespace {

struct BenchArgs {
  std::string config = "configs/demo.yaml";
  std::vector<std::string> overrides;
  int64_t steps = 20;
  bool json = false;
};

void run_bench(const BenchArgs& args) {
  const train::StepBench bench =
      train::bench_step(train::load_config(args.config, args.overrides), args.steps);
  fmt::print("{}", args.json ? train::to_json(bench) : train::describe(bench));
}

}  // namespace

void add_bench(CLI::App& app, int&) {
  CLI::App* bench = app.add_subcommand("bench", "Measure");
  bench->require_subcommand(1);
  auto args = std::make_shared<BenchArgs>();
  CLI::App* step = bench->add_subcommand("step", "A training step on random inputs");
  step->add_option("--config", args->config, "YAML file")->capture_default_str();
  step->add_option("--steps", args->steps, "steps to time")->check(check_positive)->capture_default_str();
  step->add_flag("--json", args->json, "for scripts");
  step->add_option("overrides", args->overrides, "key=value");
  step->callback([args] { run_bench(*args); });
}

}  // namespace wam::cli
