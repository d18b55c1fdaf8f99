// Host memory of the CPU device: anonymous mappings, so that untouched pages cost nothing.
#pragma once

#include <map>

#include "wam/exec/executor.h"

namespace wam {

class CpuMemory final : public Memory {
 public:
  explicit CpuMemory(const MemoryPlan& plan);
  ~CpuMemory() override;
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;

  const MemoryPlan& plan() const override { return plan_; }
  void read_region(const std::string& region, int64_t offset, void* data, int64_t size) override;
  void write_region(const std::string& region, int64_t offset, const void* data, int64_t size) override;
  void fill_uniform(const std::string& region, int64_t offset, int64_t count, DType dtype, float low,
                    float high, uint64_t seed) override;
  void draw_uniform(const DrawTarget& to, int64_t count, const RandomStream& stream, double low,
                    double high) override;
  void* region_address(const std::string& region) override;
  void* arena_address() override { return arena_; }

 private:
  std::byte* checked(const std::string& region, int64_t offset, int64_t size);
  MemoryPlan plan_;
  std::map<std::string, std::byte*> regions_;
  std::byte* arena_ = nullptr;
};

}  // namespace wam
