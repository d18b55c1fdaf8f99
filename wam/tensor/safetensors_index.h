// The index beside safetensors shards.
#pragma once

#include <map>
#include <string>

#include "wam/base/files.h"

namespace wam {

struct SafetensorsIndex {
  std::map<std::string, std::string> weight_map;  // tensor -> file name, no folder part
  std::map<std::string, std::string> metadata;    // text as it is, anything else as JSON
};

// Throws DataError for anything but an object with a "weight_map" of plain file names.
SafetensorsIndex parse_safetensors_index(const MappedFile& index);

std::string make_safetensors_index(const SafetensorsIndex& index, int64_t total_size_bytes);

}  // namespace wam
