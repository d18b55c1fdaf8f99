// Graph -> Program: decomposes what the target has no kernel for, assigns memory, reports.
#pragma once

#include <functional>
#include <string_view>

#include "wam/plan/program.h"

namespace wam {

// What lowering asks about a target device. Host code only: no device needs to be present.
struct Target {
  std::string name;  // "cpu", "cuda"
  std::function<bool(std::string_view op)> has_kernel;
  std::function<int64_t(const Step&)> workspace_bytes;  // 0 where a kernel needs none
  // Collectives run beside other work: what they touch is kept until the next but one of them begins,
  // so that the step behind one does not have to wait for its memory.
  bool collectives_overlap = false;
};

struct LowerOptions {
  // Region that holds the inputs: one per program, so that programs do not overwrite each other's.
  std::string input_region = "inputs";
};

// `graph` must verify. Throws PlanError if an update cannot share its state's memory.
Program lower(const Graph& graph, const Target& target, const LowerOptions& options = {});

}  // namespace wam
