#include "wam/data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::data {
namespace {

void check(const LoaderOptions& o) {
  const auto refuse = [](const char* key, int64_t got, const std::string& expected) {
    throw ConfigError({.where = std::string("loader.") + key,
                       .what = "value does not fit",
                       .got = std::to_string(got),
                       .expected = expected,
                       .remedy = "Choose a value that does."});
  };
  if (o.micro_batch_size < 1) refuse("micro_batch_size", o.micro_batch_size, "at least 1");
  if (o.samples_per_step < 1 || o.samples_per_step % o.micro_batch_size != 0) {
    refuse("samples_per_step", o.samples_per_step,
           "a multiple of micro_batch_size " + std::to_string(o.micro_batch_size));
  }
  if (o.num_workers < 0 || o.num_workers > 1024) refuse("num_workers", o.num_workers, "0 to 1024");
  if (o.prefetch_batches < 1) refuse("prefetch_batches", o.prefetch_batches, "at least 1");
  if (o.first_step < 0 || o.first_index < 0) refuse("first_step", o.first_step, "not negative");
}

// A micro-batch being filled.
struct Slot {
  Batch batch;
  bool allocated = false;
  int64_t missing = 0;  // samples not yet in
  std::exception_ptr error;
  int64_t error_sample = 0;
};

}  // namespace

// Samples are numbered from 0 over the loader's life: number n is sample n % B of micro-batch
// n / B, which lives in slot (n / B) % slots. One mutex guards the numbers and slots; samples are
// loaded and copied outside it.
class Loader::Impl {
 public:
  Impl(LoaderOptions options, std::shared_ptr<const SampleSource> source)
      : options_(options), source_(std::move(source)) {
    check(options_);
    WAM_CHECK(source_ != nullptr);
    slots_.resize(static_cast<size_t>(options_.num_workers == 0 ? 1 : options_.prefetch_batches));
    for (int64_t b = 0; b < std::ssize(slots_); ++b) begin_slot(b);
    if (options_.num_workers == 0) inline_worker_ = source_->make_worker();
    for (int64_t i = 0; i < options_.num_workers; ++i) {
      threads_.emplace_back([this] { run(); });
    }
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Batch next() {
    const auto begin = std::chrono::steady_clock::now();
    if (options_.num_workers == 0) load_inline();
    std::unique_lock lock(mutex_);
    Slot& slot = slot_of(consumed_);
    ready_.wait(lock, [&] { return slot.missing == 0; });
    waited_ += std::chrono::steady_clock::now() - begin;
    if (slot.error) std::rethrow_exception(slot.error);
    Batch batch = std::move(slot.batch);
    ++consumed_;
    begin_slot(consumed_ + std::ssize(slots_) - 1);
    lock.unlock();
    room_.notify_all();
    return batch;
  }

  double wait_seconds() const {
    const std::lock_guard lock(mutex_);
    return waited_.count();
  }

 private:
  Slot& slot_of(int64_t batch) { return slots_[static_cast<size_t>(batch % std::ssize(slots_))]; }

  void begin_slot(int64_t batch) {
    const int64_t per_step = options_.samples_per_step / options_.micro_batch_size;
    Slot& slot = slot_of(batch);
    slot = Slot{};
    slot.missing = options_.micro_batch_size;
    slot.batch.step = options_.first_step + batch / per_step;
    slot.batch.first_index = options_.first_index + batch % per_step * options_.micro_batch_size;
  }

  // Takes the next number if its micro-batch has a slot; false when the loader stops.
  bool take_number(int64_t& number) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] {
      return stopping_ || taken_ / options_.micro_batch_size < consumed_ + std::ssize(slots_);
    });
    if (stopping_) return false;
    number = taken_++;
    return true;
  }

  void run() {
    std::unique_ptr<WorkerState> worker;
    for (int64_t number = 0; take_number(number);) load(number, worker);
  }

  void load_inline() {
    while (taken_ < (consumed_ + 1) * options_.micro_batch_size) load(taken_++, inline_worker_);
  }

  void load(int64_t number, std::unique_ptr<WorkerState>& worker) {
    const int64_t i = number % options_.micro_batch_size;
    Slot& slot = slot_of(number / options_.micro_batch_size);
    const int64_t step = slot.batch.step, index = slot.batch.first_index + i;
    try {
      if (worker == nullptr) worker = source_->make_worker();
      place(load_sample(step, index, *worker), i, slot);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!slot.error || i < slot.error_sample) {
        slot.error = std::current_exception();
        slot.error_sample = i;
      }
    }
    finish(slot);
  }

  Sample load_sample(int64_t step, int64_t index, WorkerState& worker) const {
    try {
      return source_->load(step, index, worker);
    } catch (Error& error) {
      error.add_context("step " + std::to_string(step) + ", sample " + std::to_string(index));
      throw;
    }
  }

  void place(Sample sample, int64_t i, Slot& slot) {
    {
      const std::lock_guard lock(mutex_);
      if (!slot.allocated) allocate_batch(sample, options_.micro_batch_size, slot.batch);
      slot.allocated = true;
    }
    put_sample(std::move(sample), i, slot.batch);  // places do not overlap
  }

  void finish(Slot& slot) {
    bool whole = false;
    {
      const std::lock_guard lock(mutex_);
      whole = --slot.missing == 0;
    }
    if (whole) ready_.notify_all();
  }

  LoaderOptions options_;
  std::shared_ptr<const SampleSource> source_;
  std::unique_ptr<WorkerState> inline_worker_;

  mutable std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::vector<Slot> slots_;
  int64_t taken_ = 0;     // samples begun
  int64_t consumed_ = 0;  // micro-batches handed out
  bool stopping_ = false;
  std::chrono::duration<double> waited_{0};
  std::vector<std::thread> threads_;
};

Loader::Loader(LoaderOptions options, std::shared_ptr<const SampleSource> source)
    : impl_(std::make_unique<Impl>(options, std::move(source))) {}
Loader::~Loader() = default;
Batch Loader::next() { return impl_->next(); }
double Loader::wait_seconds() const { return impl_->wait_seconds(); }

}  // namespace wam::data
