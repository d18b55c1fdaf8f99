#include "wam/exec/cuda_trace.h"

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "wam/base/error.h"

namespace wam {
namespace {

constexpr size_t kBufferBytes = size_t{8} << 20;
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

[[noreturn]] void refuse(const std::string& what, const std::string& got) {
  throw DeviceError({.where = "trace",
                     .what = what,
                     .got = got,
                     .remedy = "Put the folder of the toolkit's libcupti.so on LD_LIBRARY_PATH "
                               "(tools/gpu_env.sh does), or leave the trace out."});
}

// The functions used, from the library of the version compiled with: records differ between
// versions.
struct Cupti {
  decltype(&cuptiActivityEnable) enable;
  decltype(&cuptiActivityDisable) disable;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&cuptiActivityFlushAll) flush;
  decltype(&cuptiActivityGetNextRecord) next;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped;
};

const Cupti& cupti() {
  static const Cupti loaded = [] {
    void* library = dlopen("libcupti.so." WAM_CUDA_MAJOR, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) refuse("CUPTI cannot be loaded", dlerror());
    Cupti c{};
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) refuse("CUPTI lacks a function", name);
    };
    find(c.enable, "cuptiActivityEnable");
    find(c.disable, "cuptiActivityDisable");
    find(c.register_callbacks, "cuptiActivityRegisterCallbacks");
    find(c.flush, "cuptiActivityFlushAll");
    find(c.next, "cuptiActivityGetNextRecord");
    find(c.dropped, "cuptiActivityGetNumDroppedRecords");
    return c;
  }();
  return loaded;
}

void demand(CUptiResult result, const char* call) {
  if (result != CUPTI_SUCCESS) refuse(std::string(call) + " fails", std::to_string(result));
}

// What CUPTI's callbacks, on a thread of its own, hand over.
struct Records {
  std::mutex mutex;
  std::vector<DeviceActivity> activities;
  size_t dropped = 0;
};
Records& records() {
  static Records all;
  return all;
}

std::string readable(const char* mangled) {
  if (mangled == nullptr) return "unnamed";
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? text : mangled;
  std::free(text);
  return name;
}

template <typename Record>
void add(Records& to, std::string name, const void* raw) {
  const auto* record = static_cast<const Record*>(raw);
  if (record->start == 0 || record->end < record->start) {
    ++to.dropped;
    return;
  }
  const auto seconds = [](uint64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); };
  static const uint64_t zero = record->start;  // one for the process: differences are what counts
  const auto since = [&](uint64_t t) { return t >= zero ? seconds(t - zero) : -seconds(zero - t); };
  to.activities.push_back({std::move(name), since(record->start), since(record->end)});
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t,
                          size_t valid) {
  Records& all = records();
  const std::lock_guard lock(all.mutex);
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cupti().next(buffer, valid, &record) == CUPTI_SUCCESS) {
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        add<CUpti_ActivityKernel10>(
            all, readable(reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name), record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        add<CUpti_ActivityMemcpy6>(all, "copy", record);
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        add<CUpti_ActivityMemset4>(all, "fill", record);
        break;
      default:
        break;
    }
  }
  size_t lost = 0;
  if (cupti().dropped(context, stream, &lost) == CUPTI_SUCCESS) all.dropped += lost;
  std::free(buffer);
}

class CuptiTrace final : public DeviceTrace {
 public:
  CuptiTrace() {
    Records& all = records();
    {
      const std::lock_guard lock(all.mutex);
      all.activities.clear();
      all.dropped = 0;
    }
    demand(cupti().register_callbacks(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
    for (const CUpti_ActivityKind kind : kKinds)
      demand(cupti().enable(kind), "cuptiActivityEnable");
    recording_ = true;
  }
  ~CuptiTrace() override { stop(); }

  std::vector<DeviceActivity> end() override {
    demand(cupti().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
    stop();
    Records& all = records();
    const std::lock_guard lock(all.mutex);
    if (all.dropped > 0) refuse("CUPTI lost records", std::to_string(all.dropped));
    std::vector<DeviceActivity> result = std::move(all.activities);
    std::ranges::sort(result, {}, &DeviceActivity::begin);
    return result;
  }

 private:
  void stop() {
    if (!recording_) return;
    recording_ = false;
    for (const CUpti_ActivityKind kind : kKinds) cupti().disable(kind);
  }
  bool recording_ = false;
};

}  // namespace

std::unique_ptr<DeviceTrace> DeviceTrace::begin() { return std::make_unique<CuptiTrace>(); }

}  // namespace wam
