// wam import-config FILE: a configuration of RLinf or DreamZero turned into ours.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/cli/commands.h"
#include "wam/train/public_config.h"

namespace wam::cli {
namespace {

struct ImportArgs {
  std::string path, out;
};

void run_import(const ImportArgs& args) {
  const train::ImportedConfig imported =
      train::import_config(read_text_file(args.path, size_t{16} << 20), args.path);
  std::string text =
      "# From " + std::filesystem::path(args.path).filename().string() + " by wam import-config.\n";
  if (!imported.not_taken.empty()) text += "# Not carried over:\n";
  for (const std::string& line : imported.not_taken) text += "#   " + line + "\n";
  text += imported.yaml;
  if (args.out.empty()) {
    fmt::print("{}", text);
    return;
  }
  if (std::filesystem::exists(args.out)) {
    throw ConfigError({.where = args.out,
                       .what = "file exists",
                       .expected = "a new file",
                       .remedy = "Name another with --out, or remove this one."});
  }
  write_file_atomic(args.out, text);
  fmt::print("wrote {}; {} settings not carried over\n", args.out, imported.not_taken.size());
  for (const std::string& line : imported.not_taken) fmt::print("  {}\n", line);
}

}  // namespace

void add_import_config(CLI::App& app, int&) {
  auto args = std::make_shared<ImportArgs>();
  CLI::App* command =
      app.add_subcommand("import-config", "Turn a YAML of RLinf or DreamZero into a configuration");
  command->add_option("file", args->path, "RLinf's or DreamZero's YAML")->required();
  command->add_option("--out", args->out, "file to write; else it is printed");
  command->callback([args] { run_import(*args); });
}

}  // namespace wam::cli
