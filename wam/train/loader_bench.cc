#include "wam/train/loader_bench.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "wam/data/loader.h"
#include "wam/train/run_data.h"
#include "wam/train/session.h"

namespace wam::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double process_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What the step does with a batch: nothing, for as long as it would take.
void stay_busy(const LoaderBench& bench) {
  if (bench.rate <= 0) return;
  const double seconds = static_cast<double>(bench.micro_batch) / bench.rate;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

LoaderBench bench_loader(const TrainConfig& config, const LoaderBenchOptions& options) {
  const RunData data = open_run_data(config, resolve_model(config));
  LoaderBench bench{.workers = config.dataset.num_workers,
                    .micro_batch = config.micro_batch_size,
                    .views = std::ssize(config.dataset.embodiment.views),
                    .rate = options.rate};
  data::Loader loader({.samples_per_step = config.global_batch_size,
                       .micro_batch_size = config.micro_batch_size,
                       .num_workers = config.dataset.num_workers,
                       .prefetch_batches = config.dataset.prefetch_batches},
                      data.train);
  for (int64_t i = 0; i <= config.dataset.prefetch_batches; ++i) {
    bench.frames = loader.next().video.shape()[1];
    stay_busy(bench);
  }
  const Clock::time_point start = Clock::now();
  const double cpu = process_cpu_seconds(), waited = loader.wait_seconds();
  while (seconds_since(start) < options.seconds) {
    loader.next();
    bench.samples += bench.micro_batch;
    stay_busy(bench);
  }
  bench.seconds = seconds_since(start);
  bench.cpu_seconds = process_cpu_seconds() - cpu;
  bench.wait_seconds = loader.wait_seconds() - waited;
  return bench;
}

std::string describe(const LoaderBench& b) {
  std::string text = fmt::format(
      "{} samples of {} views x {} frames in {:.1f} s by {} workers: {:.2f} samples/s, {:.3f} CPU s "
      "a sample ({:.1f} cores)\n",
      b.samples, b.views, b.frames, b.seconds, b.workers, b.samples_per_second(), b.cpu_per_sample(),
      b.cpu_seconds / b.seconds);
  if (b.rate <= 0) return text;
  return text + fmt::format("a step that takes {:.2f} samples/s waits {:.2f} % of the time for data\n",
                            b.rate, 100 * b.wait_share());
}

std::string to_json(const LoaderBench& b) {
  return fmt::format(
      "{{\"workers\": {}, \"micro_batch\": {}, \"views\": {}, \"frames\": {}, \"samples\": {}, "
      "\"seconds\": {:.4f}, \"wait_seconds\": {:.4f}, \"cpu_seconds\": {:.4f}, \"rate\": {}, "
      "\"samples_per_second\": {:.4f}, \"cpu_per_sample\": {:.5f}, \"wait_share\": {:.5f}}}\n",
      b.workers, b.micro_batch, b.views, b.frames, b.samples, b.seconds, b.wait_seconds, b.cpu_seconds,
      b.rate, b.samples_per_second(), b.cpu_per_sample(), b.wait_share());
}

}  // namespace wam::train
