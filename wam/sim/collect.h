// `wam sim collect`: demonstrations of the built-in world as a LeRobot v2.1 dataset (parquet, mp4,
// meta with statistics and modality.json), indistinguishable in form from a recorded one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "wam/sim/expert.h"
#include "wam/sim/world.h"

namespace wam::sim {

struct CollectOptions {
  std::filesystem::path path;  // the dataset's folder; made, with its parents
  int64_t episodes = 200;      // 1 .. 1000000
  uint64_t seed = 0;           // episodes of different seeds are different
  WorldConfig world;
  ExpertOptions expert;
  std::string codec = "h264";  // as VideoWriterOptions::codec
  int gop = 12;                // frames from key frame to key frame, 1 .. 600
  int crf = 12;  // video quality, 0 .. 51; low: small pictures must keep their colours
};
// Throws ConfigError.
void validate(const CollectOptions& options);

struct CollectProgress {
  int64_t episodes_done = 0, episodes = 0;
  int64_t frames = 0;  // rows so far
};

struct CollectReport {
  bool reused = false;  // the folder held this very collection already; nothing was written
  int64_t episodes = 0, frames = 0, tasks = 0;
  std::string codec;  // of the videos as written
};

// Writes the dataset under `path` + ".partial" and renames it when it is whole and on disk, so that
// `path` never holds half a dataset; what a killed collection left there is removed first. The same
// options give the same rows and pictures. A `path` with the same collection in it is left as it is
// and reported as reused (meta/wam_sim.json remembers the options and the files' sizes); any other
// non-empty folder is refused, as is a path that another process is collecting into. `progress` is
// called after each episode; what it throws ends the collection and leaves nothing behind.
// Throws ConfigError for options, DataError for files.
CollectReport collect(const CollectOptions& options,
                      const std::function<void(const CollectProgress&)>& progress = {});

// The world's seed of one episode of a collection.
uint64_t episode_seed(uint64_t seed, int64_t episode);

}  // namespace wam::sim
