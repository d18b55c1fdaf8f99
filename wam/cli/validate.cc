// wam validate DATASET: reads everything, prints every fault and a table of counts.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "wam/cli/commands.h"
#include "wam/cli/progress.h"
#include "wam/cli/usage.h"
#include "wam/data/validate.h"

namespace wam::cli {
namespace {

constexpr int kExitFaults = 3;

struct ValidateArgs {
  std::filesystem::path dataset;
  data::ValidateOptions options;
  bool tables_only = false, errors_only = false, codes = false;
};

int run_validate(const ValidateArgs& args) {
  data::ValidateOptions options = args.options;
  options.decode_pictures = !args.tables_only;
  data::ValidationReport report;
  {
    ProgressLine line("validating", "episodes");
    options.progress = [&line](int64_t done, int64_t total) { line.update(done, total); };
    report = data::validate_dataset(args.dataset, options);
  }
  fmt::print("{}", data::format_report(report));
  const bool failed =
      args.errors_only ? report.count(data::Severity::kError) > 0 : report.has_faults();
  return failed ? kExitFaults : 0;
}

void print_codes() {
  for (const data::FaultKind& kind : data::fault_kinds()) {
    fmt::print("{:<22} {}\n", kind.code, kind.meaning);
  }
}

}  // namespace

void add_validate(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<ValidateArgs>();
  CLI::App* command = app.add_subcommand(
      "validate", "Read a whole dataset and report every fault; exit code 3 if there is one");
  CLI::Option* dataset =
      command->add_option("dataset", args->dataset, "folder of a LeRobot dataset");
  command->add_flag("--no-pictures", args->tables_only, "tables and video indexes only");
  command->add_flag("--errors-only", args->errors_only,
                    "exit code 3 for errors only, not for warnings");
  command->add_option("--threads", args->options.num_threads, "0: one a processor")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      ->add_option("--timestamp-tolerance", args->options.timestamp_tolerance_s,
                   "seconds a timestamp may lie from row / fps")
      ->check(check_not_negative)
      ->capture_default_str();
  command->add_flag("--codes", args->codes, "list the codes of all faults and stop");
  command->callback([=, &exit_code] {
    if (args->codes) return print_codes();
    if (dataset->count() == 0) throw CLI::RequiredError("dataset");
    exit_code = run_validate(*args);
  });
}

}  // namespace wam::cli
