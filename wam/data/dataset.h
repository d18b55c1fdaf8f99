// A LeRobot dataset on disk: meta, tables and pictures, read by key and by integer frame index.
// The interface is what transforms, sampler, loader, stats and validate are written against; the
// versions (v2.0, v2.1, v3.0, images in parquet) are behind it. Thread-safe for reading: each
// thread uses its own FrameReader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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
  // Cameras only, as info.json says; empty or 0 where it says nothing.
  std::string codec, pixel_format;
  double fps = 0;
  bool is_depth_map = false;

  bool is_video() const { return dtype == "video"; }
  bool is_image() const { return dtype == "image"; }  // pictures inside parquet
  bool is_camera() const { return is_video() || is_image(); }
  // Numbers in one row of a column: the product of `shape`.
  int64_t width() const;
  // Height and width of a camera's pictures by `names` ("height", "width"), else by the place of
  // the 3 channels. Throws DataError if `shape` is not that of a picture.
  int64_t picture_height() const;
  int64_t picture_width() const;
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
  std::map<std::string, HostTensor> numeric;             // column -> [rows, width] f64
  std::map<std::string, std::vector<std::string>> text;  // string columns
};

// Decodes pictures of one dataset; keeps decoders and files open. Not thread-safe: one per thread.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  // Frames of one camera at `rows` (any order, repeats allowed) -> [rows, h, w, 3] u8 RGB.
  // Throws DataError naming file and frame: unknown camera, absent, damaged or short video, another
  // size than info.json's.
  virtual HostTensor read(const Episode& episode, const std::string& camera_feature,
                          std::span<const int64_t> rows) = 0;
  // The same one picture after the other, in any order: `sink` gets the place in `rows` and the
  // picture [h, w, 3], which is valid during the call. No clip lies in memory as a whole.
  using Sink = std::function<void(size_t place, std::span<const uint8_t> rgb)>;
  virtual void read_each(const Episode& episode, const std::string& camera_feature,
                         std::span<const int64_t> rows, const Sink& sink);
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const std::filesystem::path& root() const = 0;
  virtual std::string version() const = 0;  // "v2.0", "v2.1", "v3.0"
  virtual double fps() const = 0;
  virtual const std::vector<Feature>& features() const = 0;
  virtual const Feature* find_feature(const std::string& key) const = 0;
  virtual const std::vector<Episode>& episodes() const = 0;  // ascending by index
  virtual const Modality& modality() const = 0;  // from modality.json, else one slice a column
  virtual const std::map<int64_t, std::string>& tasks() const = 0;  // task_index -> text
  // Statistics per column as in stats.json: name ("q01") -> values; empty map when there are none.
  virtual const std::map<std::string, std::map<std::string, std::vector<double>>>& stats()
      const = 0;
  // Relative-action statistics (meta/relative_stats_dreamzero.json), by slice key.
  virtual const std::map<std::string, std::map<std::string, std::vector<double>>>& relative_stats()
      const = 0;
  // Reads the episode's parquet file: all columns of numbers and strings. Not cached. Throws
  // DataError with file, column and row: not the rows or widths the meta tells, nulls, NaN or Inf
  // in a column of modality().state or .action.
  virtual EpisodeTable read_table(const Episode& episode) const = 0;
  // The same for some columns; cheaper. Throws DataError for one that is missing.
  virtual EpisodeTable read_columns(const Episode& episode,
                                    std::span<const std::string> columns) const;
  // Episodes that info.json lists under "discarded_episode_indices": not in episodes().
  virtual const std::vector<int64_t>& discarded_episodes() const;
  virtual std::string robot_type() const { return ""; }
  virtual std::unique_ptr<FrameReader> make_frame_reader() const = 0;
};

// Opens any supported version; reads the meta folder only. Throws DataError: path missing, unknown
// version, empty, meta files that contradict themselves.
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& root);

}  // namespace wam::data
