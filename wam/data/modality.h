// meta/modality.json: short names for slices of columns and for cameras, and what stands in for it
// when a dataset has none.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "wam/data/dataset.h"

namespace wam::data {

// Reads meta/modality.json, or makes the default from the features when it is absent. Entries
// without "original_key": state observation.state, action action, video observation.images.KEY (or
// KEY where there is no such feature), annotation annotation.KEY. Throws DataError: not JSON, start
// and end not 0 <= start < end, a slice beyond its column's width, a
// rotation_type that is unknown or of another width.
Modality read_modality(const std::filesystem::path& root, const std::vector<Feature>& features);

// Without modality.json: columns of numbers named observation.state*, state* are states, action*
// are actions, each whole; the key is the name without "observation.". Cameras are all video and
// image features under their name without "observation.images."; annotation.* columns are
// annotations.
Modality default_modality(const std::vector<Feature>& features);

}  // namespace wam::data
