#include "wam/train/checkpoint_saver.h"

#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/train/checkpoint.h"

namespace wam::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Files are written by what the step leaves of the processor.
void lower_own_priority() {
  constexpr int kNice = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
  omp_set_num_threads(1);
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}

int64_t bytes_below(const std::filesystem::path& folder) {
  int64_t bytes = 0;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    if (item.is_regular_file()) bytes += static_cast<int64_t>(item.file_size());
  }
  return bytes;
}

}  // namespace

CheckpointSaver::CheckpointSaver(CheckpointStore& store, const StateAccess& states, Memory& memory,
                                 SaverOptions options)
    : store_(store), states_(states), options_(options) {
  if (!options_.async) return;
  copy_ = std::make_shared<HostCopy>(memory, state_regions(memory.plan(), states.params()));
  copied_states_ = std::make_unique<StateAccess>(states.on(copy_));
}

CheckpointSaver::~CheckpointSaver() {
  if (thread_.joinable()) thread_.join();
  if (failure_) log_error("checkpoint of step " + std::to_string(step()) + " failed: " + text_of(failure_));
}

void CheckpointSaver::begin(SaveRequest request) {
  const Clock::time_point start = Clock::now();
  if (busy()) {
    log_warn(fmt::format("the checkpoint of step {} is still being written: step {} waits for it. Save less "
                         "often, or to a faster disk",
                         step(), request.step));
  }
  if (thread_.joinable()) thread_.join();
  if (failure_) log_error("checkpoint of step " + std::to_string(step()) + " failed: " + text_of(failure_));
  failure_ = nullptr;
  step_ = request.step;
  if (copy_) {
    busy_ = true;
    copied_ = false;
    thread_ = std::thread([this, request = std::move(request)] { work(request); });
  } else {
    work(request);
  }
  stall_seconds_ += seconds_since(start);
}

// In the saver's thread, if there is one.
void CheckpointSaver::work(const SaveRequest& request) {
  const Clock::time_point start = Clock::now();
  try {
    store_.demand_room(options_.checkpoint_bytes, options_.reserve_bytes);
    if (copy_) copy_states();
    write_with_retries(request);
  } catch (...) {
    failure_ = std::current_exception();
  }
  copied_ = true;
  copied_.notify_all();
  last_seconds_ = seconds_since(start);
  busy_ = false;
}

void CheckpointSaver::copy_states() {
  copy_->refresh();
  copied_ = true;
  copied_.notify_all();
  lower_own_priority();
}

void CheckpointSaver::write_with_retries(const SaveRequest& request) {
  const StateAccess& states = copy_ ? *copied_states_ : states_;
  double pause = options_.first_pause_seconds;
  for (int64_t tried = 0;; ++tried, pause *= 2) {
    try {
      const auto entry = store_.save(
          request.step, [&](const std::filesystem::path& folder) { request.write(folder, states); },
          request.best_loss);
      options_.checkpoint_bytes = std::max(options_.checkpoint_bytes, bytes_below(entry.path));
      return;
    } catch (const NotFiniteError&) {
      throw;  // will not get better
    } catch (const std::exception& error) {
      if (tried >= options_.retries) throw;
      log_warn(fmt::format("checkpoint of step {}: {} Tried again in {:.0f} s ({} of {})", request.step,
                           error.what(), pause, tried + 1, options_.retries));
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
}

void CheckpointSaver::await_copy() {
  if (copied_) return;
  const Clock::time_point start = Clock::now();
  copied_.wait(false);
  stall_seconds_ += seconds_since(start);
}

void CheckpointSaver::finish() {
  if (thread_.joinable()) thread_.join();
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

std::exception_ptr CheckpointSaver::take_failure() {
  if (busy()) return nullptr;
  if (thread_.joinable()) thread_.join();
  return std::exchange(failure_, nullptr);
}

double CheckpointSaver::take_stall_seconds() { return std::exchange(stall_seconds_, 0); }

}  // namespace wam::train
