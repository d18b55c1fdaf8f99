#include "wam/exec/cpu_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "wam/base/check.h"
#include "wam/base/random_stream.h"
#include "wam/tensor/split_float.h"

namespace wam {
namespace {

std::byte* map_zeroed(int64_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw PlanError({.where = "cpu memory",
                     .what = "the plan's memory cannot be mapped",
                     .got = std::to_string(bytes) + " bytes",
                     .remedy = "Lower micro_batch_size or set recompute: full."});
  }
  // Large pages save a tenth of a step in page walks; the advice may be ignored.
  madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

std::shared_ptr<std::byte> map_host_pages(int64_t bytes) {
  return {map_zeroed(bytes), [bytes](std::byte* pages) {
            if (pages != nullptr) munmap(pages, static_cast<size_t>(bytes));
          }};
}

std::shared_ptr<std::byte> Memory::host_buffer(int64_t bytes) { return map_host_pages(bytes); }

CpuMemory::CpuMemory(const MemoryPlan& plan) : plan_(plan) {
  for (const auto& [name, bytes] : plan.regions) regions_[name] = map_zeroed(bytes);
  arena_ = map_zeroed(plan.arena_bytes);
}

CpuMemory::~CpuMemory() {
  for (const auto& [name, address] : regions_) {
    if (address != nullptr) munmap(address, static_cast<size_t>(plan_.regions[name]));
  }
  if (arena_ != nullptr) munmap(arena_, static_cast<size_t>(plan_.arena_bytes));
}

std::byte* CpuMemory::checked(const std::string& region, int64_t offset, int64_t size) {
  const auto found = regions_.find(region);
  WAM_CHECK(found != regions_.end()) << "region '" << region << "'";
  WAM_CHECK(offset >= 0 && size >= 0 && offset + size <= plan_.regions[region])
      << "range " << offset << " + " << size << " of region '" << region << "'";
  return found->second + offset;
}

void CpuMemory::read_region(const std::string& region, int64_t offset, void* data, int64_t size) {
  std::memcpy(data, checked(region, offset, size), static_cast<size_t>(size));
}

void CpuMemory::write_region(const std::string& region, int64_t offset, const void* data, int64_t size) {
  std::memcpy(checked(region, offset, size), data, static_cast<size_t>(size));
}

void CpuMemory::fill_uniform(const std::string& region, int64_t offset, int64_t count, DType dtype,
                             float low, float high, uint64_t seed) {
  WAM_CHECK(dtype == DType::kF32 || dtype == DType::kBF16) << name(dtype);
  std::byte* out = checked(region, offset, count * size_bytes(dtype));
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < (count + 3) / 4; ++block) {
    const PhiloxBlock bits =
        philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
               static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
    for (int64_t e = 4 * block; e < std::min(count, 4 * block + 4); ++e) {
      const float u = static_cast<float>(bits[static_cast<size_t>(e % 4)] >> 8) * 0x1.0p-24f;
      const float value = low + (high - low) * u;
      if (dtype == DType::kF32) {
        reinterpret_cast<float*>(out)[e] = value;
      } else {
        reinterpret_cast<uint16_t*>(out)[e] = float_to_bf16(value);
      }
    }
  }
}

void CpuMemory::draw_uniform(const DrawTarget& to, int64_t count, const RandomStream& stream,
                             double low, double high) {
  WAM_CHECK(to.dtype == DType::kF32 || to.dtype == DType::kBF16) << name(to.dtype);
  const int64_t bytes = size_bytes(to.dtype);
  std::byte* out = checked(to.region, to.offset * bytes, count * bytes);
  int16_t* rest = nullptr;
  if (!to.low_region.empty()) {
    WAM_CHECK(to.dtype == DType::kBF16) << name(to.dtype);
    rest = reinterpret_cast<int16_t*>(checked(to.low_region, to.offset * 2, count * 2));
  }
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < (count + 1) / 2; ++block) {
    const PhiloxBlock words = stream.block(static_cast<uint64_t>(block));
    for (int64_t e = 2 * block; e < std::min(count, 2 * block + 2); ++e) {
      const double u = RandomStream::uniform(words, static_cast<int>(e % 2));
      const auto value = static_cast<float>(low + (high - low) * u);
      if (to.dtype == DType::kF32) {
        reinterpret_cast<float*>(out)[e] = value;
      } else if (rest == nullptr) {
        reinterpret_cast<uint16_t*>(out)[e] = float_to_bf16(value);
      } else {
        const SplitFloat halves = split_float(value);
        reinterpret_cast<uint16_t*>(out)[e] = halves.high;
        rest[e] = halves.low;
      }
    }
  }
}

void* CpuMemory::region_address(const std::string& region) { return checked(region, 0, 0); }

}  // namespace wam
