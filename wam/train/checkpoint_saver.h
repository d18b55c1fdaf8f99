// Saves checkpoints beside the run. begin() starts a thread that copies the states to the host and
// writes the copy; the states may change again once await_copy() has returned, which is before the
// next optimizer step: until then nothing changes them anyway. One save is in flight at a time.
//
// A write that fails is tried again, later and later; one that fails for good is kept for
// take_failure(), logged, and leaves the older checkpoints. Without `async` begin() does all of it.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "wam/train/checkpoint_store.h"
#include "wam/train/host_copy.h"
#include "wam/train/state_access.h"

namespace wam::train {

struct SaverOptions {
  bool async = true;
  int64_t retries = 4;
  double first_pause_seconds = 1;  // doubles from try to try
  int64_t reserve_bytes = 0;       // disk space a save leaves free
  int64_t checkpoint_bytes = 0;    // expected size; after the first save its real one counts too
};

struct SaveRequest {
  int64_t step = 0;
  std::optional<double> best_loss;  // set: the best so far
  // Writes everything from these states into an empty folder. Called in the saver's thread, once a
  // try: owns what it needs.
  std::function<void(const std::filesystem::path&, const StateAccess&)> write;
};

class CheckpointSaver {
 public:
  // All must outlive this. PlanError if `async` and the host has no memory for the copy.
  CheckpointSaver(CheckpointStore& store, const StateAccess& states, Memory& memory,
                  SaverOptions options);
  // Completes the save in flight; a failure is logged.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Waits for an earlier save first.
  void begin(SaveRequest request);
  // Returns when the states may change.
  void await_copy();
  // Completes the save in flight. Throws what it failed with.
  void finish();
  // The failure of a save that has ended; once. Null: none so far.
  std::exception_ptr take_failure();

  bool busy() const { return busy_.load(); }
  int64_t step() const { return step_.load(); }  // of the save in flight, or of the last one
  int64_t ticks() const { return copy_ ? copy_->ticks() : 0; }
  // Of the last save: seconds from begin() to its end; 0 before the first.
  double last_seconds() const { return last_seconds_.load(); }
  // Seconds the caller was held up since the last call, in begin() and await_copy().
  double take_stall_seconds();

 private:
  void work(const SaveRequest& request);
  void copy_states();
  void write_with_retries(const SaveRequest& request);

  CheckpointStore& store_;
  const StateAccess& states_;
  SaverOptions options_;
  std::shared_ptr<HostCopy> copy_;  // null: saves are not asynchronous
  std::unique_ptr<StateAccess> copied_states_;
  std::thread thread_;
  std::atomic<bool> busy_ = false, copied_ = true;
  std::atomic<int64_t> step_ = 0;
  std::atomic<double> last_seconds_ = 0;
  std::exception_ptr failure_;  // read after joining
  double stall_seconds_ = 0;
};

}  // namespace wam::train
