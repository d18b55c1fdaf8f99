// Recompute: forward values that the backward half would keep are dropped and computed again when it
// needs them. Exact: the clones are the same kernels on the same inputs.
//
// A value is "kept" if it lives from the forward into the backward half. Inputs, states, constants
// and views cost nothing. Values are named for lists by where they come from, without the block's
// number: "ffn/linear_gelu:1" is the second output of a linear_gelu labelled "blocks.<i>.ffn".
#pragma once

#include <string>
#include <vector>

#include "wam/graph/graph.h"

namespace wam {

enum class RecomputePolicy : uint8_t {
  kNone,    // keep everything
  kFull,    // per block keep only what crosses blocks: one residual stream each
  kBudget,  // drop by least time per byte until what is kept fits
  kList,    // drop the named values
};

struct RecomputeOptions {
  RecomputePolicy policy = RecomputePolicy::kNone;
  int64_t budget_bytes = 0;        // kBudget: for all kept values together
  std::vector<std::string> drop;   // kList
  // What a second costs when values are weighed (kBudget); the defaults are an H200's.
  double flops_per_second = 650e12;
  double bytes_per_second = 4.0e12;
};

struct RecomputeReport {
  int64_t kept_bytes_before = 0, kept_bytes_after = 0;
  double recomputed_flops = 0, recomputed_bytes = 0;
  std::vector<std::string> dropped;  // names with the number of blocks: "ffn/linear_gelu:0 x30"
};

// `graph` holds both halves. Throws ConfigError if a listed name matches nothing, PlanError if the
// budget cannot be reached (says what full recompute would keep).
RecomputeReport recompute(Graph& graph, const RecomputeOptions& options);

}  // namespace wam
