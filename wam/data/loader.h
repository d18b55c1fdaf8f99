// Runs ahead of the training step: worker threads load samples into a ring of micro-batches, which
// come out in order. What comes out depends on the source, the step and nothing else, so that a
// resumed run only needs the step's number, and the number of workers changes no bit.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "wam/data/types.h"

namespace wam::data {

// What one thread keeps between samples: open files and decoders.
class WorkerState {
 public:
  virtual ~WorkerState() = default;
};

// Samples by their place in the run. const members are called from several threads at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::unique_ptr<WorkerState> make_worker() const = 0;
  // Sample `index` of the global batch of `step`; all samples of a source have the same shapes.
  virtual Sample load(int64_t step, int64_t index, WorkerState& worker) const = 0;
};

struct LoaderOptions {
  int64_t first_step = 0;        // the step of the first batch
  int64_t first_index = 0;       // this rank's part of the global batch: [first_index,
  int64_t samples_per_step = 1;  //   first_index + samples_per_step)
  int64_t micro_batch_size = 1;  // divides samples_per_step
  int64_t num_workers = 2;       // 0: next() loads in the caller's thread
  int64_t prefetch_batches = 4;  // micro-batches held at most, the one being consumed aside
};

class Loader {
 public:
  // Throws ConfigError for options that do not fit together. Loading starts at once.
  Loader(LoaderOptions options, std::shared_ptr<const SampleSource> source);
  // Waits for samples being loaded, not for those not begun.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next micro-batch: micro-batches of a step in order, then the next step's. Rethrows what the
  // source threw for it (of several samples, the first's), with step and sample in the message; the
  // loader is then at its end and throws the same again.
  Batch next();

  // Seconds that next() has waited for samples (with no workers: has loaded them).
  double wait_seconds() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Copies a sample into place `i` of a batch of `size`, allocating the batch's tensors if they are
// empty; throws DataError if its shapes differ from theirs.
void allocate_batch(const Sample& sample, int64_t size, Batch& batch);
void put_sample(Sample sample, int64_t i, Batch& batch);

}  // namespace wam::data
