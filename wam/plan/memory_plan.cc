#include "wam/plan/memory_plan.h"

#include <algorithm>

namespace wam {
namespace {

// A region's bytes by role; padding inside a region counts with its largest role.
void add_region(const Region& region, std::map<std::string, int64_t>& by_category) {
  int64_t named = 0, most = -1;
  std::string largest = region.by_role.empty() ? "inputs" : "";
  for (const auto& [role, bytes] : region.by_role) {
    by_category[std::string(name(role))] += bytes;
    named += bytes;
    if (bytes > most) {
      most = bytes;
      largest = std::string(name(role));
    }
  }
  by_category[largest] += region.bytes - std::min(named, region.bytes);
}

}  // namespace

int64_t MemoryPlan::total_bytes() const {
  int64_t total = arena_bytes + constant_bytes;
  for (const auto& [name, bytes] : regions) total += bytes;
  return total;
}

MemoryPlan combine(std::span<const Program* const> programs) {
  MemoryPlan plan;
  std::map<std::string, const Region*> largest;
  int64_t workspace = 0;
  for (const Program* program : programs) {
    plan.arena_bytes = std::max(plan.arena_bytes, program->arena.peak);
    if (program->arena.peak == plan.arena_bytes) workspace = program->arena.workspace;
    for (const HostTensor& constant : program->constants) plan.constant_bytes += constant.size_bytes();
    for (const Region& region : program->regions) {
      const Region*& seen = largest[region.name];
      if (seen == nullptr || region.bytes > seen->bytes) seen = &region;
      plan.regions[region.name] = std::max(plan.regions[region.name], region.bytes);
    }
  }
  for (const auto& [name, region] : largest) add_region(*region, plan.by_category);
  plan.by_category["activations"] = plan.arena_bytes - workspace;
  plan.by_category["workspace"] = workspace;
  plan.by_category["constants"] = plan.constant_bytes;
  return plan;
}

}  // namespace wam
