// What `wam inspect` says about a checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wam/train/config.h"

namespace wam::train {

struct InspectOptions {
  std::string config;      // a run's YAML to hold it against; empty: the published models
  bool has_names = true;   // a line for every tensor
  bool has_hashes = true;  // with a hash of its bytes, which reads the whole checkpoint
};

// Kind, files, LoRA; of each model its tensors and which configuration it fits or what keeps it
// from fitting; then names, types, sizes and hashes. Throws DataError for what find_checkpoint()
// refuses.
std::string inspect_checkpoint(const std::filesystem::path& path, const InspectOptions& options);

}  // namespace wam::train
