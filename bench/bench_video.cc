// bench_video DATASET [--threads N] [--clips N] [--frames N] [--stride N] [--images] [--ffmpeg]
// How fast frames come from a dataset: one JSON object a line. `sequential` reads every episode of
// the first camera in clips one after the other; `random` reads clips of --frames rows, --stride
// apart, from random places, as training draws them. CPU seconds are of this process, so
// frames_per_cpu_s is per core. --images times a copy with PNG pictures inside parquet; --ffmpeg
// times the ffmpeg program decoding the same videos to RGB with one thread.
//
// bench_video --clips-file FILE [--threads N]: decodes the clips of a file, a line each: path, tab,
// frame numbers. Once to warm up, once timed; with --cold every clip meets a reader that has seen
// no file. tools/bench_torchcodec.py runs it beside torchcodec.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/philox.h"
#include "wam/data/dataset.h"
#include "wam/data/lerobot_info.h"
#include "wam/data/lerobot_v2.h"
#include "wam/data/repack.h"
#include "wam/data/video_reader.h"

namespace {

using wam::data::Dataset;
using wam::data::Episode;

struct Options {
  std::string dataset;
  std::string clips_file;
  int threads = 1;
  int64_t clips = 100, frames = 33, stride = 3;
  bool images = false, ffmpeg = false, cold = false;
};

double cpu_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Wall and CPU time of what `function` does; it returns the frames read.
template <typename Function>
void measure(const std::string& dataset, const std::string& mode, int threads, int who,
             Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds(who);
  const int64_t frames = function();
  const double cpu = cpu_seconds(who) - cpu_start;
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(
      "{{\"dataset\": \"{}\", \"mode\": \"{}\", \"threads\": {}, \"frames\": {}, "
      "\"wall_s\": {:.3f}, \"cpu_s\": {:.3f}, \"frames_per_s\": {:.1f}, "
      "\"frames_per_cpu_s\": {:.1f}}}\n",
      dataset, mode, threads, frames, wall, cpu, static_cast<double>(frames) / wall,
      static_cast<double>(frames) / cpu);
  std::fflush(stdout);
}

// Runs work(thread) -> frames on every thread and adds up.
template <typename Work>
int64_t on_threads(int threads, Work&& work) {
  std::vector<int64_t> frames(static_cast<size_t>(threads), 0);
  std::vector<std::exception_ptr> failures(static_cast<size_t>(threads));
  {
    std::vector<std::jthread> pool;
    for (int t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        try {
          frames[static_cast<size_t>(t)] = work(t);
        } catch (...) {
          failures[static_cast<size_t>(t)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  return std::accumulate(frames.begin(), frames.end(), int64_t{0});
}

int64_t read_sequential(const Dataset& dataset, const std::string& camera, int thread,
                        const Options& options) {
  const auto reader = dataset.make_frame_reader();
  int64_t frames = 0;
  for (size_t e = static_cast<size_t>(thread); e < dataset.episodes().size();
       e += static_cast<size_t>(options.threads)) {
    const Episode& episode = dataset.episodes()[e];
    for (int64_t first = 0; first < episode.length; first += options.frames) {
      std::vector<int64_t> rows(
          static_cast<size_t>(std::min(options.frames, episode.length - first)));
      std::iota(rows.begin(), rows.end(), first);
      frames += reader->read(episode, camera, rows).shape()[0];
    }
  }
  return frames;
}

int64_t read_random(const Dataset& dataset, const std::string& camera, int thread,
                    const Options& options) {
  const auto reader = dataset.make_frame_reader();
  int64_t frames = 0;
  for (int64_t clip = thread; clip < options.clips; clip += options.threads) {
    wam::Random random(1, wam::RandomUse::kWindow, static_cast<uint64_t>(clip), 0);
    const Episode& episode = dataset.episodes()[random.below(dataset.episodes().size())];
    const int64_t extent = std::min(episode.length, (options.frames - 1) * options.stride + 1);
    const auto first =
        static_cast<int64_t>(random.below(static_cast<uint64_t>(episode.length - extent + 1)));
    std::vector<int64_t> rows;
    for (int64_t row = first; row < first + extent; row += options.stride) rows.push_back(row);
    frames += reader->read(episode, camera, rows).shape()[0];
  }
  return frames;
}

int64_t run_ffmpeg(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execlp("ffmpeg", "ffmpeg", "-v", "error", "-nostdin", "-threads", "1", "-i", path.c_str(),
             "-sws_flags", "bilinear", "-pix_fmt", "rgb24", "-f", "rawvideo", "-y", "/dev/null",
             static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

void bench(const Dataset& dataset, const std::string& label, const Options& options) {
  const std::string camera = dataset.modality().video.begin()->second;
  measure(label, "sequential", options.threads, RUSAGE_SELF, [&] {
    return on_threads(options.threads,
                      [&](int t) { return read_sequential(dataset, camera, t, options); });
  });
  measure(label, "random", options.threads, RUSAGE_SELF, [&] {
    return on_threads(options.threads,
                      [&](int t) { return read_random(dataset, camera, t, options); });
  });
}

void bench_ffmpeg(const Dataset& dataset, const Options& options) {
  const wam::data::LerobotInfo info = wam::data::read_lerobot_info(dataset.root());
  const std::string camera = dataset.modality().video.begin()->second;
  measure(options.dataset, "ffmpeg", 1, RUSAGE_CHILDREN, [&] {
    int64_t frames = 0;
    for (const Episode& episode : dataset.episodes()) {
      const auto path = wam::data::video_path(dataset.root(), info, episode.index, camera);
      if (run_ffmpeg(path.string()) != 0) {
        throw wam::DataError({.where = path.string(),
                              .what = "ffmpeg failed",
                              .remedy = "Try it by hand on this file."});
      }
      frames += episode.length;
    }
    return frames;
  });
}

struct Clip {
  std::string path;
  std::vector<int64_t> frames;
};

std::vector<Clip> read_clips(const std::string& file) {
  std::vector<Clip> clips;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    Clip clip{line.substr(0, tab), {}};
    std::istringstream numbers(tab == std::string::npos ? "" : line.substr(tab));
    for (int64_t frame = 0; numbers >> frame;) clip.frames.push_back(frame);
    if (!clip.frames.empty()) clips.push_back(std::move(clip));
  }
  if (!clips.empty()) return clips;
  throw wam::DataError({.where = file,
                        .what = "no clips",
                        .expected = "lines of path, tab, frame numbers",
                        .remedy = "Make the file with tools/bench_torchcodec.py."});
}

void bench_clips(const Options& options) {
  const std::vector<Clip> clips = read_clips(options.clips_file);
  const auto indexes = std::make_shared<wam::data::VideoIndexCache>();
  std::vector<std::unique_ptr<wam::data::VideoReader>> readers;
  for (int t = 0; t < options.threads; ++t) {
    readers.push_back(std::make_unique<wam::data::VideoReader>(indexes, 32));
  }
  std::vector<uint64_t> sums(clips.size());
  const auto pass = [&](bool with_sums) {
    std::atomic<size_t> next{0};
    return on_threads(options.threads, [&](int t) {
      int64_t frames = 0;
      for (size_t i = next++; i < clips.size(); i = next++) {
        if (options.cold) {
          readers[static_cast<size_t>(t)] = std::make_unique<wam::data::VideoReader>();
        }
        const wam::HostTensor pictures =
            readers[static_cast<size_t>(t)]->read(clips[i].path, clips[i].frames);
        frames += pictures.shape()[0];
        if (!with_sums) continue;
        const auto bytes = pictures.as<uint8_t>();
        sums[i] = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
      }
      return frames;
    });
  };
  const auto packets = [&] {
    int64_t total = 0;
    for (const auto& reader : readers) total += reader->counts().packets_decoded;
    return total;
  };
  pass(true);
  const int64_t before = packets();
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds(RUSAGE_SELF);
  const int64_t frames = pass(false);
  const double cpu = cpu_seconds(RUSAGE_SELF) - cpu_start;
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(
      "{{\"clips\": {}, \"frames\": {}, \"decoded\": {}, \"wall_s\": {:.4f}, \"cpu_s\": {:.4f}, "
      "\"sums\": [{}]}}\n",
      clips.size(), frames, packets() - before, wall, cpu, fmt::join(sums, ", "));
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atoll(argv[++i]) : 0; };
    if (argument == "--threads")
      options.threads = static_cast<int>(number());
    else if (argument == "--clips")
      options.clips = number();
    else if (argument == "--frames")
      options.frames = number();
    else if (argument == "--stride")
      options.stride = number();
    else if (argument == "--clips-file")
      options.clips_file = i + 1 < argc ? argv[++i] : "";
    else if (argument == "--cold")
      options.cold = true;
    else if (argument == "--images")
      options.images = true;
    else if (argument == "--ffmpeg")
      options.ffmpeg = true;
    else
      options.dataset = argument;
  }
  const bool good = options.dataset.empty() != options.clips_file.empty() && options.threads > 0 &&
                    options.clips > 0 && options.frames > 0 && options.stride > 0;
  if (good) return options;
  throw wam::ConfigError({.where = "bench_video",
                          .what = "usage",
                          .expected = "DATASET [--threads N] [--clips N] [--frames N] [--stride N] "
                                      "[--images] [--ffmpeg], or --clips-file FILE [--cold] "
                                      "[--threads N]; "
                                      "numbers above 0",
                          .remedy = "Call it like that."});
}

void run(const Options& options) {
  if (!options.clips_file.empty()) return bench_clips(options);
  const auto dataset = wam::data::open_dataset(options.dataset);
  if (options.ffmpeg) bench_ffmpeg(*dataset, options);
  if (!options.images) return bench(*dataset, options.dataset, options);
  const wam::TempDir temp;
  wam::data::repack_with_images(*dataset, temp / "images");
  bench(*wam::data::open_dataset(temp / "images"), options.dataset + " (PNG in parquet)", options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
    return 0;
  } catch (const wam::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
}
