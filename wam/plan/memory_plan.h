// Bytes that a set of programs needs together: each named region once, and one arena that is their
// maximum, since only one program runs at a time.
#pragma once

#include <map>
#include <span>
#include <string>

#include "wam/plan/program.h"

namespace wam {

struct MemoryPlan {
  std::map<std::string, int64_t> regions;
  int64_t arena_bytes = 0;
  int64_t constant_bytes = 0;
  std::map<std::string, int64_t> by_category;  // weights, master, moments, ..., activations, inputs
  int64_t total_bytes() const;
};

MemoryPlan combine(std::span<const Program* const> programs);

}  // namespace wam
