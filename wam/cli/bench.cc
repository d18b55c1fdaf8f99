// wam bench step: time of a training step by op kind, its memory, and the share outside kernels.
// wam bench kernels: each kernel of a step beside its floor. wam bench ablate: the best setting,
// and one thing at a time set otherwise.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <numeric>

#include "wam/base/error.h"
#include "wam/base/strings.h"
#include "wam/cli/bench_loader.h"
#include "wam/cli/commands.h"
#include "wam/cli/usage.h"
#include "wam/dist/mpi.h"
#include "wam/dist/world.h"
#include "wam/train/bench.h"
#include "wam/train/bench_ablate.h"
#include "wam/train/bench_kernels.h"
#include "wam/train/device.h"

namespace wam::cli {
namespace {

struct BenchArgs {
  std::string model;  // 5b, 14b: published sizes; empty: the config's
  std::string config = "configs/demo.yaml";
  std::vector<std::string> overrides;
  std::string device, exec = "graph", recompute, dtype,
                      gradient_dtype;  // empty: the model's default
  std::string sharding, capture = "inside";
  int64_t shard_size = 0, micro_batch = 0, accumulate = 0, layers = 0, prompt_tokens = -1, steps = 0;
  std::string frozen;             // of `step`: cached, online, or nothing
  std::string only_op;            // of `kernels`
  std::vector<std::string> only;  // of `ablate`
  int64_t tuned_rounds = 0;
  bool no_fusion = false, no_optimizer = false, no_profile = false, plan = false, json = false;
  bool trace = false, tune = false;
};

[[noreturn]] void refuse(const std::string& option, const std::string& got,
                         const std::string& expected) {
  throw ConfigError({.where = "wam bench step",
                     .what = "value of " + option + " is not known",
                     .got = "'" + got + "'",
                     .expected = expected,
                     .remedy = "See wam bench step --help."});
}

DType parse_compute_type(const std::string& option, const std::string& text) {
  if (text == "bf16") return DType::kBF16;
  if (text == "f32") return DType::kF32;
  refuse(option, text, "bf16 or f32");
}

// Pictures of the robot each published model was trained on.
std::shared_ptr<train::TrainConfig> published_run(const std::string& model) {
  auto run = std::make_shared<train::TrainConfig>();
  const bool large = model == "14b";
  run->device = "cuda";
  run->dtype = DType::kBF16;
  run->dataset.embodiment = data::embodiment_preset(large ? "oxe_droid" : "libero_sim");
  run->picture_height = large ? 352 : 160;
  run->picture_width = large ? 640 : 320;
  run->vae.kind = large ? "wan21" : "wan22";
  return run;
}

// The published model on one GPU, in bf16; a clip of four blocks, as it is trained.
train::StepBenchOptions published(const std::string& model) {
  train::StepBenchOptions o{.device = "cuda", .steps = 5};
  o.step.dtype = DType::kBF16;
  o.run = published_run(model);
  if (model == "5b") {
    o.step.model = dit_5b();
    o.step.model.actions_per_block = 16;
  } else if (model == "14b") {
    o.step.model = dit_14b();
    o.step.model.actions_per_block = 24;
  } else {
    refuse("--model", model, "5b or 14b");
  }
  return o;
}

RecomputeOptions parse_recompute(const std::string& text) {
  RecomputeOptions o;
  if (text == "none") return o;
  o.policy = text == "full"   ? RecomputePolicy::kFull
             : text == "auto" ? RecomputePolicy::kBudget
                              : RecomputePolicy::kList;
  if (o.policy == RecomputePolicy::kList) o.drop = split(text, ',');
  return o;
}

train::Strategy parse_strategy(const std::string& text) {
  using train::Strategy;
  for (const Strategy strategy :
       {Strategy::kNone, Strategy::kOptimizer, Strategy::kGradients, Strategy::kFull}) {
    if (train::name(strategy) == text) return strategy;
  }
  refuse("--sharding", text, "none, optimizer, gradients or full");
}

// The prompt's tokens and one row for the padding behind them.
int64_t text_rows(int64_t prompt_tokens, int64_t text_len) {
  return std::min(prompt_tokens + 1, text_len);
}

// Clips are encoded eight at a time, or as many as the micro-batch has.
void set_frozen(const BenchArgs& args, train::StepBenchOptions& o) {
  if (args.frozen.empty()) return;
  if (args.frozen != "cached" && args.frozen != "online")
    refuse("--frozen", args.frozen, "cached or online");
  o.frozen = args.frozen == "cached" ? train::FrozenWork::kCached : train::FrozenWork::kOnline;
  auto run = std::make_shared<train::TrainConfig>(*o.run);
  constexpr int64_t kClips = 8;
  if (!args.model.empty()) run->vae.sub_batch = std::gcd(o.step.shape.batch, kClips);
  o.run = run;
}

train::StepBenchOptions options_of(const BenchArgs& args) {
  train::StepBenchOptions o =
      args.model.empty() ? train::bench_options(train::load_config(args.config, args.overrides))
                         : published(args.model);
  if (!args.model.empty() && !args.overrides.empty()) {
    refuse("key=value", args.overrides.front(), "options alone beside --model");
  }
  if (!args.device.empty()) o.device = args.device;
  train::check_device_name("wam bench step --device", o.device);
  if (args.exec != "graph" && args.exec != "stream") refuse("--exec", args.exec, "graph or stream");
  o.exec = args.exec == "graph" ? ExecMode::kGraph : ExecMode::kStream;
  train::StepOptions& step = o.step;
  if (args.micro_batch > 0) step.shape.batch = args.micro_batch;
  if (args.accumulate > 0) step.accumulate = args.accumulate;
  if (args.layers > 0) step.model.layers = args.layers;
  if (args.prompt_tokens >= 0)
    step.shape.text_tokens = text_rows(args.prompt_tokens, step.model.text_len);
  if (!args.recompute.empty()) step.recompute = parse_recompute(args.recompute);
  if (!args.dtype.empty()) step.dtype = parse_compute_type("--dtype", args.dtype);
  if (!args.gradient_dtype.empty()) {
    step.gradient_dtype = parse_compute_type("--gradient-dtype", args.gradient_dtype);
  }
  if (step.gradient_dtype == DType::kBF16 && step.dtype == DType::kF32) {
    refuse("--gradient-dtype", "bf16", "f32 beside --dtype f32");
  }
  if (!args.sharding.empty()) step.sharding.strategy = parse_strategy(args.sharding);
  o.communicate = step.sharding.keep_lone = !args.sharding.empty();
  if (args.capture != "inside" && args.capture != "cut")
    refuse("--capture", args.capture, "inside or cut");
  o.cut_at_collectives = args.capture == "cut";
  if (args.no_fusion) step.fuse = false;
  set_frozen(args, o);
  if (args.steps > 0) o.steps = args.steps;
  o.with_optimizer = !args.no_optimizer;
  o.profile = !args.no_profile;
  o.trace = args.trace;
  o.tune = args.tune;
  return o;
}

// This process's place among the ranks of a launcher; each has the GPU of its number.
void place(const BenchArgs& args, const std::shared_ptr<dist::World>& world, train::StepBenchOptions& o) {
  const bool divides = o.step.sharding.strategy != train::Strategy::kNone;
  const int64_t shard_size = !divides ? 1 : args.shard_size != 0 ? args.shard_size : world->size();
  o.step.sharding.mesh = dist::make_mesh(world->size(), world->rank(), static_cast<int>(shard_size));
  if (o.device == "cuda") o.device += ":" + std::to_string(world->launch().local_rank);
  o.world = world;
}

train::StepBench run_together(const BenchArgs& args, train::StepBenchOptions options) {
  const dist::Launch launch = dist::detect_launch(dist::process_environment(), dist::has_mpi());
  if (launch.size == 1) return train::bench_step(options);
  const std::shared_ptr<dist::World> world = dist::World::join(launch);
  try {
    place(args, world, options);
    const train::StepBench bench = train::bench_step(options);
    world->leave();
    return bench;
  } catch (const std::exception& error) {
    world->report(error);
    throw;
  }
}

void run_bench(const BenchArgs& args) {
  const train::StepBenchOptions options = options_of(args);
  const train::StepBench bench =
      args.plan ? train::plan_bench(options, train::kH200Bytes) : run_together(args, options);
  if (bench.rank != 0) return;
  fmt::print("{}", args.json ? train::to_json(bench) : train::describe(bench));
}

void run_kernels(const BenchArgs& args) {
  const train::KernelBench bench = train::bench_kernels(options_of(args), args.only_op);
  fmt::print("{}", args.json ? train::to_json(bench) : train::describe(bench));
}

// On standard error: standard output is the table or JSON.
void show_progress(const train::Ablation& a) {
  fmt::print(stderr, "{}: {}\n", a.name,
             a.ran ? fmt::format("{:.2f} ms", 1e3 * a.bench.seconds) : std::string("does not fit"));
}

void run_ablate(const BenchArgs& args) {
  const train::StepBenchOptions best = options_of(args);
  if (args.tuned_rounds > 0) {
    fmt::print("{}", train::describe(train::bench_tuned(best, args.tuned_rounds)));
    return;
  }
  const auto ablations = train::bench_ablate({.best = best, .only = args.only}, show_progress);
  fmt::print("{}", args.json ? train::to_json(ablations) : train::describe(ablations));
}

// What describes the step; all benches have it.
void add_step_options(CLI::App& step, BenchArgs& a) {
  step.add_option("--config", a.config, "YAML file of a run")->capture_default_str();
  step.add_option("--model", a.model,
                  "5b or 14b: the published model, bf16 on the GPU, in place of a config");
  step.add_option("--micro-batch-size", a.micro_batch, "samples at a time")->check(check_positive);
  step.add_option("--accumulate", a.accumulate, "micro-batches of an optimizer step")
      ->check(check_positive);
  step.add_option("--recompute", a.recompute,
                  "none, full, auto (what the memory allows), or values by name: a,b");
  step.add_option("--exec", a.exec, "graph: captured and replayed, or stream")
      ->capture_default_str();
  step.add_flag("--no-fusion", a.no_fusion, "every fused op taken apart");
  step.add_flag("--no-optimizer", a.no_optimizer, "forward and backward alone");
  step.add_option("--layers", a.layers, "transformer blocks")->check(check_positive);
  step.add_option("--prompt-tokens", a.prompt_tokens, "tokens of the prompts")
      ->check(check_not_negative);
  step.add_option("--dtype", a.dtype, "bf16 or f32");
  step.add_option("--gradient-dtype", a.gradient_dtype, "f32 or bf16");
  step.add_option("--sharding", a.sharding,
                  "none, optimizer, gradients or full, by the ranks of a launcher; alone, what its "
                  "collectives cost");
  step.add_option("--shard-size", a.shard_size, "ranks that divide states; 0: all")
      ->check(check_not_negative);
  step.add_option("--capture", a.capture,
                  "inside: collectives in the graph, or cut: between graphs")
      ->capture_default_str();
  step.add_option("--device", a.device, "cpu, cuda or cuda:N");
  step.add_option("--steps", a.steps, "steps to time")->check(check_positive);
  step.add_flag("--json", a.json, "for scripts");
  step.add_option("overrides", a.overrides, "key=value");
}

void add_own_options(CLI::App& step, BenchArgs& a) {
  step.add_flag("--no-profile", a.no_profile, "do not time each kernel");
  step.add_option("--frozen", a.frozen,
                  "cached: inputs come from the host for each micro-batch, as a trainer's; online: "
                  "and pictures "
                  "are encoded");
  step.add_flag("--trace", a.trace,
                "record one captured step with CUPTI: the share without a kernel");
  step.add_flag("--tune", a.tune, "time the products' algorithms first");
  step.add_flag("--plan", a.plan, "only what is known without a device, for an H200's memory");
}

}  // namespace

void add_bench(CLI::App& app, int&) {
  CLI::App* bench = app.add_subcommand("bench", "Measure");
  bench->require_subcommand(1);
  auto args = std::make_shared<BenchArgs>();
  CLI::App* step = bench->add_subcommand("step", "A training step on random inputs");
  add_step_options(*step, *args);
  add_own_options(*step, *args);
  step->callback([args] { run_bench(*args); });
  CLI::App* kernels =
      bench->add_subcommand("kernels", "Each kernel of a training step beside its floor");
  add_step_options(*kernels, *args);
  kernels->add_option("--op", args->only_op, "only ops whose name contains this");
  kernels->callback([args] { run_kernels(*args); });
  CLI::App* ablate =
      bench->add_subcommand("ablate", "A training step, and one thing at a time set otherwise");
  add_step_options(*ablate, *args);
  ablate->add_option("--only", args->only, "ablations by name")->delimiter(';');
  ablate
      ->add_option(
          "--tuned", args->tuned_rounds,
          "instead: the products' first algorithms and tuned ones in turns, so many rounds")
      ->check(check_positive);
  ablate->callback([args] { run_ablate(*args); });
  add_bench_loader(*bench);
}

}  // namespace wam::cli
