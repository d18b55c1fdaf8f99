// wam export CHECKPOINT OUT: the public layouts, LoRA merged or apart, other types, the average.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "wam/cli/commands.h"
#include "wam/cli/usage.h"
#include "wam/train/export.h"

namespace wam::cli {
namespace {

using train::ExportLayout;

struct ExportArgs {
  train::ExportOptions options;
  std::string layout = "dreamzero";
  int64_t shard_megabytes = 5000;
  bool no_encoders = false;
};

const std::map<std::string, ExportLayout> kLayouts = {{"dreamzero", ExportLayout::kDreamZero},
                                                      {"transformer", ExportLayout::kTransformer},
                                                      {"lora", ExportLayout::kLora}};

void run_export(ExportArgs& args) {
  args.options.layout = kLayouts.at(args.layout);
  args.options.has_encoders = !args.no_encoders;
  args.options.max_shard_bytes = args.shard_megabytes * 1000 * 1000;
  fmt::print("{}", train::export_checkpoint(args.options));
}

}  // namespace

void add_export(CLI::App& app, int&) {
  auto args = std::make_shared<ExportArgs>();
  CLI::App* command = app.add_subcommand("export", "Write a checkpoint in a public layout");
  command
      ->add_option("checkpoint", args->options.checkpoint,
                   "checkpoint of any kind that wam inspect knows")
      ->required();
  command->add_option("out", args->options.out, "folder to make")->required();
  command
      ->add_option("--layout", args->layout,
                   "dreamzero, transformer (Wan's names) or lora (factors and their base's hash)")
      ->check(CLI::IsMember({"dreamzero", "transformer", "lora"}))
      ->capture_default_str();
  command->add_option("--dtype", args->options.dtype, "keep, f32 or bf16")
      ->check(CLI::IsMember({"keep", "f32", "bf16"}))
      ->capture_default_str();
  command->add_option("--config", args->options.config,
                      "the run's YAML; else the checkpoint's config.yaml");
  command->add_option("--base", args->options.base,
                      "base model of an adapter, or of the frozen encoders");
  command->add_option("--experiment-cfg", args->options.experiment,
                      "folder whose conf.yaml is copied");
  command->add_flag("--ema", args->options.ema, "the moving average in place of the weights");
  command->add_flag("--no-encoders", args->no_encoders, "the transformer alone");
  command->add_option("--shard-megabytes", args->shard_megabytes, "largest file")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  command->callback([args] { run_export(*args); });
}

}  // namespace wam::cli
