#include "wam/passes/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/strings.h"
#include "wam/graph/text.h"
#include "wam/graph/verify.h"

namespace wam {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void dump(const Graph& graph, size_t number, const std::string& pass, const PassOptions& options) {
  if (options.dump_after != "all" && options.dump_after != pass) return;
  std::filesystem::create_directories(options.dump_folder);
  write_file_atomic(options.dump_folder / fmt::format("{}.{:02}.{}.txt", graph.name(), number, pass),
                    print(graph));
}

}  // namespace

std::vector<PassReport> run_passes(Graph& graph, std::span<const Pass> passes,
                                   const PassOptions& options) {
  std::vector<PassReport> reports;
  for (const Pass& pass : passes) {
    if (std::ranges::count(options.disable, pass.name) != 0) continue;
    PassReport report{.name = pass.name, .nodes_before = static_cast<int>(graph.order().size())};
    const double start = now();
    report.changed = pass.run(graph);
    report.seconds = now() - start;
    report.nodes_after = static_cast<int>(graph.order().size());
    if (report.changed) verify(graph);
    reports.push_back(report);
    dump(graph, reports.size(), pass.name, options);
  }
  return reports;
}

void check_disabled(std::span<const std::string> disable, std::span<const std::string> known) {
  for (const std::string& name : disable) {
    if (std::ranges::count(known, name) != 0) continue;
    throw ConfigError({.where = "disable_passes",
                       .what = "no pass has this name",
                       .got = "'" + name + "'",
                       .expected = "one of " + join(known, ", "),
                       .remedy = name_hint(name, known)});
  }
}

}  // namespace wam
