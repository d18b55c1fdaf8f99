// Device memory of the CUDA device: one allocation that holds the regions and the arena, and the
// one stream on which everything that touches it is ordered.
#pragma once

#include <cuda_runtime_api.h>

#include <map>

#include "wam/exec/executor.h"

namespace wam {

class CudaMemory final : public Memory {
 public:
  // DeviceError if the allocation fails.
  explicit CudaMemory(const MemoryPlan& plan);
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  const MemoryPlan& plan() const override { return plan_; }
  void read_region(const std::string& region, int64_t offset, void* data, int64_t size) override;
  void write_region(const std::string& region, int64_t offset, const void* data,
                    int64_t size) override;
  void read_at_rest(const std::string& region, int64_t offset, void* data, int64_t size) override;
  std::shared_ptr<std::byte> host_buffer(int64_t bytes) override;
  void fill_uniform(const std::string& region, int64_t offset, int64_t count, DType dtype, float low,
                    float high, uint64_t seed) override;
  void draw_uniform(const DrawTarget& to, int64_t count, const RandomStream& stream, double low,
                    double high) override;
  void* region_address(const std::string& region) override;
  void* arena_address() override { return arena_; }
  cudaStream_t stream() const { return stream_; }

 private:
  std::byte* checked(const std::string& region, int64_t offset, int64_t size);
  MemoryPlan plan_;
  std::map<std::string, std::byte*> regions_;
  std::byte *base_ = nullptr, *arena_ = nullptr;
  cudaStream_t stream_ = nullptr, rest_stream_ = nullptr;  // the second for what needs no order
};

}  // namespace wam
