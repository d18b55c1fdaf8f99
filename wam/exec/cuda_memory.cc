#include "wam/exec/cuda_memory.h"

#include <string>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/random_stream.h"
#include "wam/kernels/cuda/fill.h"
#include "wam/kernels/cuda/support.h"

namespace wam {
namespace {

constexpr int64_t kAlignment = 512;
int64_t align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

CudaMemory::CudaMemory(const MemoryPlan& plan) : plan_(plan) {
  int64_t total = align(plan.arena_bytes);
  for (const auto& [name, bytes] : plan.regions) total += align(bytes);
  void* base = nullptr;
  const auto size = static_cast<size_t>(std::max(total, kAlignment));
  if (const cudaError_t status = cudaMalloc(&base, size); status != cudaSuccess) {
    cudaGetLastError();
    throw DeviceError({.where = "cuda memory",
                       .what = "the plan's memory cannot be allocated",
                       .got = std::to_string(total) + " bytes: " + cudaGetErrorString(status),
                       .remedy =
                           "Lower micro_batch_size or set recompute: full; if the card should "
                           "have room, another process holds its memory."});
  }
  base_ = static_cast<std::byte*>(base);
  cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  cuda::check(cudaStreamCreateWithFlags(&rest_stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  cuda::check(cudaMemsetAsync(base_, 0, size, stream_), "clearing memory");
  std::byte* at = base_;
  for (const auto& [name, bytes] : plan.regions) {
    regions_[name] = at;
    at += align(bytes);
  }
  arena_ = at;
}

CudaMemory::~CudaMemory() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
  cudaStreamDestroy(rest_stream_);
  cudaFree(base_);
}

std::byte* CudaMemory::checked(const std::string& region, int64_t offset, int64_t size) {
  const auto found = regions_.find(region);
  WAM_CHECK(found != regions_.end()) << "region '" << region << "'";
  WAM_CHECK(offset >= 0 && size >= 0 && offset + size <= plan_.regions[region])
      << "range " << offset << " + " << size << " of region '" << region << "'";
  return found->second + offset;
}

void CudaMemory::read_region(const std::string& region, int64_t offset, void* data, int64_t size) {
  const std::byte* from = checked(region, offset, size);
  cuda::check(
      cudaMemcpyAsync(data, from, static_cast<size_t>(size), cudaMemcpyDeviceToHost, stream_),
      "reading a region");
  cuda::check(cudaStreamSynchronize(stream_), "reading a region");
}

void CudaMemory::read_at_rest(const std::string& region, int64_t offset, void* data, int64_t size) {
  const std::byte* from = checked(region, offset, size);
  cuda::check(
      cudaMemcpyAsync(data, from, static_cast<size_t>(size), cudaMemcpyDeviceToHost, rest_stream_),
      "reading a region at rest");
  cuda::check(cudaStreamSynchronize(rest_stream_), "reading a region at rest");
}

// Pinned, so that copies reach the bus's rate; where the host will not pin so much, plain pages.
std::shared_ptr<std::byte> CudaMemory::host_buffer(int64_t bytes) {
  void* pages = nullptr;
  if (bytes > 0 && cudaHostAlloc(&pages, static_cast<size_t>(bytes), cudaHostAllocPortable) == cudaSuccess) {
    return {static_cast<std::byte*>(pages), [](std::byte* p) { cudaFreeHost(p); }};
  }
  cudaGetLastError();
  return map_host_pages(bytes);
}

void CudaMemory::write_region(const std::string& region, int64_t offset, const void* data,
                              int64_t size) {
  std::byte* to = checked(region, offset, size);
  cuda::check(cudaMemcpyAsync(to, data, static_cast<size_t>(size), cudaMemcpyHostToDevice, stream_),
              "writing a region");
  cuda::check(cudaStreamSynchronize(stream_), "writing a region");
}

void CudaMemory::fill_uniform(const std::string& region, int64_t offset, int64_t count, DType dtype,
                              float low, float high, uint64_t seed) {
  std::byte* out = checked(region, offset, count * size_bytes(dtype));
  cuda::launch_fill_uniform({out, count, dtype, low, high, seed}, stream_);
  cuda::check(cudaStreamSynchronize(stream_), "filling a region");
}

void CudaMemory::draw_uniform(const DrawTarget& to, int64_t count, const RandomStream& stream,
                              double low, double high) {
  const int64_t bytes = size_bytes(to.dtype);
  cuda::DrawArgs args{.out = checked(to.region, to.offset * bytes, count * bytes),
                      .count = count,
                      .dtype = to.dtype,
                      .key0 = stream.key0,
                      .key1 = stream.key1,
                      .step = stream.step,
                      .index = stream.index,
                      .low = low,
                      .high = high};
  if (!to.low_region.empty()) {
    WAM_CHECK(to.dtype == DType::kBF16) << name(to.dtype);
    args.rest = checked(to.low_region, to.offset * 2, count * 2);
  }
  cuda::launch_draw_uniform(args, stream_);
  cuda::check(cudaStreamSynchronize(stream_), "drawing a region");
}

void* CudaMemory::region_address(const std::string& region) { return checked(region, 0, 0); }

}  // namespace wam
