// A copy of a run's states on the host, from which a checkpoint is written while training goes on.
// Its size is the states', known from the plan; its pages are touched by the first copy.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wam/exec/executor.h"
#include "wam/models/params.h"

namespace wam::train {

// Names of the plan's regions that hold what a checkpoint holds: of each flat buffer the weights,
// what bf16 leaves of the master, and the moments; in the plan's order.
std::vector<std::string> state_regions(const MemoryPlan& plan, const ParamSet& params);
int64_t state_bytes(const MemoryPlan& plan, const ParamSet& params);

// What the system can give without swapping (/proc/meminfo, MemAvailable); 0 if it does not say.
int64_t free_host_bytes();

class HostCopy final : public Memory {
 public:
  // Reserves. `source` must outlive this. PlanError if the host has no such memory.
  HostCopy(Memory& source, std::vector<std::string> regions);

  // Copies all regions as they are. By one thread, while nobody writes to the source's regions.
  void refresh();
  // Grows with every piece copied or read: a sign of life for a watchdog.
  int64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }

  const MemoryPlan& plan() const override { return plan_; }
  void read_region(const std::string& region, int64_t offset, void* data, int64_t size) override;
  // A checkpoint is only read: the rest is InternalError.
  void write_region(const std::string& region, int64_t offset, const void* data, int64_t size) override;
  void fill_uniform(const std::string& region, int64_t offset, int64_t count, DType dtype, float low,
                    float high, uint64_t seed) override;
  void draw_uniform(const DrawTarget& to, int64_t count, const RandomStream& stream, double low,
                    double high) override;
  void* region_address(const std::string& region) override;
  void* arena_address() override;

 private:
  std::byte* checked(const std::string& region, int64_t offset, int64_t size);

  Memory& source_;
  MemoryPlan plan_;
  std::map<std::string, std::shared_ptr<std::byte>> regions_;
  std::atomic<int64_t> ticks_{0};
};

}  // namespace wam::train
