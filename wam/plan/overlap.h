// Collectives beside other work: which step has to wait for which of them, by the memory they
// touch. Right for any order and any assignment of memory; how much overlaps is up to those.
#pragma once

#include <cstdint>
#include <vector>

#include "wam/plan/program.h"

namespace wam {

// A device runs collectives in the program's order on a lane of their own. Each begins after all
// other steps before it. For every step: the number of the last collective step that must have
// ended before it, or -1. Steps named by an earlier step's wait are not named again.
std::vector<int32_t> awaited_collectives(const Program& program);

}  // namespace wam
