// Where a rank is, for the watchdog and for messages about it: written by the thread that trains,
// read by the watchdog's. No locks and no allocation: texts are string literals.
#pragma once

#include <atomic>
#include <cstdint>

namespace wam::dist {

struct Progress {
  std::atomic<const char*> phase{"start"};  // "loading", "forward and backward", "checkpoint"
  std::atomic<int64_t> step{0};
  std::atomic<const char*> collective{nullptr};  // being executed; null outside
  std::atomic<int64_t> num_collectives{0};       // begun so far: the same number on every rank
  std::atomic<int64_t> ticks{0};                 // grows whenever anything above changes

  void enter(const char* new_phase, int64_t new_step) {
    phase.store(new_phase, std::memory_order_relaxed);
    step.store(new_step, std::memory_order_relaxed);
    ticks.fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace wam::dist
