// The value of an --embodiment option.
#pragma once

#include <string>

#include "wam/data/embodiment.h"

namespace wam::cli {

// A built-in robot's name, or a YAML file: an embodiment block by itself, under the key
// `embodiment`, or inside a run's config under `dataset`. Throws ConfigError with the nearest
// preset, DataError for a file that cannot be read.
data::Embodiment embodiment_from_argument(const std::string& preset_or_file);

}  // namespace wam::cli
