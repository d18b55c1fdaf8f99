// Statistics for normalisation, by state and action key: read from a checkpoint's or a user's
// metadata.json or from the dataset's meta folder, and written in the public layout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "wam/data/dataset.h"
#include "wam/data/embodiment.h"

namespace wam::data {

// "q01" -> [width], or [A * width] row-major where every row of a block has its own.
using StatTable = std::map<std::string, std::vector<double>>;

struct KeyStats {
  int64_t width = 0;  // dims of the whole key, of which an embodiment may use some
  StatTable values;
};

struct NormStats {
  std::map<std::string, KeyStats> state, action;  // action: relative where the key is relative
  std::string source;                             // file or folder, for messages
};

// {TAG: {statistics: {state: {KEY: {q01: [...]}}, action: ...}, modalities: ...}}. Relative keys'
// statistics are those of the differences. Throws DataError: no such file, not JSON, tag absent
// (listing those present), entries that are not numbers.
NormStats load_metadata_stats(const std::filesystem::path& path, const std::string& tag);

// Slices of meta/stats.json, and meta/relative_stats_dreamzero.json for relative action keys.
// Throws DataError naming the missing keys, with `wam stats` as the remedy.
NormStats dataset_stats(const Dataset& dataset, const Embodiment& embodiment);

// The statistics of a run: those of `metadata` if it is named, else the dataset's own.
NormStats find_norm_stats(const std::filesystem::path& metadata, const Dataset& dataset,
                          const Embodiment& embodiment);

// What metadata.json says besides statistics.
struct VideoInfo {
  int64_t width = 0, height = 0;
  double fps = 0;
};

// One robot's part of metadata.json.
struct MetadataBlock {
  std::string tag;  // its key in the file
  const Embodiment* embodiment = nullptr;
  const NormStats* stats = nullptr;
  std::map<std::string, VideoInfo> video;  // by view key
  const Modality* modality = nullptr;      // rotation types, and which keys are absolute; may be null
};
// metadata.json in the public layout.
std::string metadata_json(const std::vector<MetadataBlock>& blocks);
// Of one embodiment, under its tag.
std::string metadata_json(const Embodiment& embodiment, const NormStats& stats,
                          const std::map<std::string, VideoInfo>& video);
// The keys of a metadata.json. Throws DataError: no such file, not JSON.
std::vector<std::string> metadata_tags(const std::filesystem::path& path);

}  // namespace wam::data
