#include "wam/train/host_copy.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "wam/base/check.h"

namespace wam::train {
namespace {

// Of one read from the device: small enough for signs of life, large enough to cost nothing.
constexpr int64_t kPieceBytes = int64_t{256} << 20;

}  // namespace

std::vector<std::string> state_regions(const MemoryPlan& plan, const ParamSet& params) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : plan.regions) {
    const bool is_state = std::ranges::any_of(params.buffers(), [&](const FlatBuffer& buffer) {
      return name == buffer.region || (name.starts_with(buffer.region + ":") &&
                                       name != gradient_region(buffer.region));
    });
    if (is_state) names.push_back(name);
  }
  return names;
}

int64_t state_bytes(const MemoryPlan& plan, const ParamSet& params) {
  int64_t total = 0;
  for (const std::string& name : state_regions(plan, params)) total += plan.regions.at(name);
  return total;
}

int64_t free_host_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kibibytes = 0;
  for (std::string rest; file >> key; std::getline(file, rest)) {
    if (key == "MemAvailable:" && file >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

HostCopy::HostCopy(Memory& source, std::vector<std::string> regions) : source_(source) {
  for (const std::string& name : regions) {
    plan_.regions[name] = source.plan().regions.at(name);
    regions_[name] = source.host_buffer(plan_.regions[name]);
  }
}

void HostCopy::refresh() {
  for (const auto& [name, bytes] : plan_.regions) {
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      source_.read_at_rest(name, at, regions_[name].get() + at, std::min(kPieceBytes, bytes - at));
      ticks_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

std::byte* HostCopy::checked(const std::string& region, int64_t offset, int64_t size) {
  const auto found = regions_.find(region);
  WAM_CHECK(found != regions_.end()) << "region '" << region << "' is not copied";
  WAM_CHECK(offset >= 0 && size >= 0 && offset + size <= plan_.regions[region]) << region;
  return found->second.get() + offset;
}

void HostCopy::read_region(const std::string& region, int64_t offset, void* data, int64_t size) {
  std::memcpy(data, checked(region, offset, size), static_cast<size_t>(size));
  ticks_.fetch_add(1, std::memory_order_relaxed);
}

void HostCopy::write_region(const std::string& region, int64_t, const void*, int64_t) {
  WAM_CHECK(false) << "the copy of " << region << " is read only";
}

void HostCopy::fill_uniform(const std::string& region, int64_t, int64_t, DType, float, float, uint64_t) {
  WAM_CHECK(false) << "the copy of " << region << " is read only";
}

void HostCopy::draw_uniform(const DrawTarget& to, int64_t, const RandomStream&, double, double) {
  WAM_CHECK(false) << "the copy of " << to.region << " is read only";
}

void* HostCopy::region_address(const std::string& region) { return checked(region, 0, 0); }

void* HostCopy::arena_address() { return nullptr; }

}  // namespace wam::train
