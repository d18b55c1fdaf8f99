// The loader by itself: how fast samples of a run come, and how long a step that takes them at a
// given rate would wait.
#pragma once

#include <cstdint>
#include <string>

#include "wam/train/config.h"

namespace wam::train {

struct LoaderBenchOptions {
  double seconds = 20;  // of the timed part
  double rate = 0;      // samples a second that the step takes; 0: as fast as they come
};

struct LoaderBench {
  int64_t workers = 0, micro_batch = 0;
  int64_t samples = 0;      // in the timed part
  double seconds = 0;       // of the timed part
  double wait_seconds = 0;  // of them, spent in Loader::next()
  double cpu_seconds = 0;   // of the process, all threads
  int64_t frames = 0;       // tiled pictures of a sample
  int64_t views = 0;        // cameras of a picture
  double rate = 0;          // asked for

  double samples_per_second() const { return static_cast<double>(samples) / seconds; }
  double cpu_per_sample() const { return cpu_seconds / static_cast<double>(samples); }
  double wait_share() const { return wait_seconds / seconds; }
};

// Draws the run's samples in their order with the config's workers. The step is a clock: it takes a
// micro-batch, then is busy for micro_batch / rate seconds. The first micro-batches, until every
// prefetched one has been replaced, are not timed. Needs no device and no weights; throws what
// opening the run's data and loading its samples throw.
LoaderBench bench_loader(const TrainConfig& config, const LoaderBenchOptions& options);
std::string describe(const LoaderBench& bench);
std::string to_json(const LoaderBench& bench);

}  // namespace wam::train
