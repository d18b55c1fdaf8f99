// Rewrites of a graph. A pass changes graphs, never numbers, unless its tier says so:
//   exact      the same bits
//   rounding   the same mathematics; other order or precision of rounding, with a derived bound
//   numerics   another computation; runs only if the user asked for it by name
// The runner verifies after each pass, times it, and can dump the graph or leave a pass out.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "wam/graph/graph.h"

namespace wam {

enum class PassTier : uint8_t { kExact, kRounding, kNumerics };

struct Pass {
  std::string name;  // a verb: "fuse_linear_gelu"
  PassTier tier = PassTier::kExact;
  std::function<bool(Graph&)> run;  // true if it changed the graph
};

struct PassOptions {
  std::vector<std::string> disable;   // names; an unknown one is a ConfigError with the nearest name
  std::string dump_after;             // name of a pass, "all", or empty
  std::filesystem::path dump_folder;  // files "<graph>.<number>.<pass>.txt"
};

struct PassReport {
  std::string name;
  bool changed = false;
  int nodes_before = 0, nodes_after = 0;
  double seconds = 0;
};

std::vector<PassReport> run_passes(Graph& graph, std::span<const Pass> passes, const PassOptions& options);

// Throws ConfigError if `disable` names a pass that is not in `known`.
void check_disabled(std::span<const std::string> disable, std::span<const std::string> known);

}  // namespace wam
