// A LeRobot dataset on disk: meta, tables and pictures, read by key and by integer frame index.
// The interface is what transforms, sampler, loader, stats and validate are written against; the
// versions (v2.0, v2.1, images in parquet, later v3.0) are behind it. Thread-safe for reading: each
// thread uses its own FrameReader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam::data {

// One entry of info.json's "features".
struct Feature {
  std::string key;    // "observation.state"
  std::string dtype;  // "video", "image", "float32", "int64", "string", ...
  std::vector<int64_t> shape;
  std::vector<std::string> names;
};

// A slice of a column under a short name: modality.json's entry, or a whole column without it.
struct ModalitySlice {
  std::string key;           // "left_arm"
  std::string original_key;  // column the slice is cut from
  int64_t begin = 0, end = 0;
  bool absolute = true;
  std::string rotation_type;  // empty if none
};

struct Modality {
  std::vector<ModalitySlice> state, action;
  std::map<std::string, std::string> video;       // short name -> feature key
  std::map<std::string, std::string> annotation;  // short name -> column
};

struct Episode {
  int64_t index = 0;   // episode_index, a key, not a position
  int64_t length = 0;  // rows
  std::vector<std::string> tasks;
};

// The numeric and text columns of one episode, whole. Rows are frames.
struct EpisodeTable {
  int64_t num_rows = 0;
  std::map<std::string, HostTensor> numeric;              // column -> [rows, width] f64
  std::map<std::string, std::vector<std::string>> text;   // string columns
};

// Decodes pictures of one dataset; keeps decoders and files open. Not thread-safe: one per thread.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  // Frames of one camera at `rows` (any order, repeats allowed) -> [rows, h, w, 3] u8 RGB.
  virtual HostTensor read(const Episode& episode, const std::string& camera_feature,
                          std::span<const int64_t> rows) = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const std::filesystem::path& root() const = 0;
  virtual std::string version() const = 0;  // "v2.0", "v2.1"
  virtual double fps() const = 0;
  virtual const std::vector<Feature>& features() const = 0;
  virtual const Feature* find_feature(const std::string& key) const = 0;
  virtual const std::vector<Episode>& episodes() const = 0;  // ascending by index
  virtual const Modality& modality() const = 0;  // from modality.json, else one slice a column
  virtual const std::map<int64_t, std::string>& tasks() const = 0;  // task_index -> text
  // Statistics per column as in stats.json: name ("q01") -> values; empty map when there are none.
  virtual const std::map<std::string, std::map<std::string, std::vector<double>>>& stats() const = 0;
  // Relative-action statistics (meta/relative_stats_dreamzero.json), by slice key.
  virtual const std::map<std::string, std::map<std::string, std::vector<double>>>& relative_stats()
      const = 0;
  // Reads the episode's parquet file. Throws DataError with file, column and row.
  virtual EpisodeTable read_table(const Episode& episode) const = 0;
  virtual std::unique_ptr<FrameReader> make_frame_reader() const = 0;
};

// Opens any supported version. Throws DataError: path missing, unknown version, empty.
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& root);

}  // namespace wam::data
