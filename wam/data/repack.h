// Writes a dataset again in another form, from its decoded frames.
#pragma once

#include <filesystem>

#include "wam/data/dataset.h"

namespace wam::data {

struct RepackOptions {
  bool as_jpeg = false;  // else PNG: pictures to the bit
  int jpeg_quality = 95;
  int png_compression = 1;
};

// A copy of `source` with every camera's pictures inside the parquet files, as
// physical-intelligence/libero has them. Cameras that no episode has are left out of the copy's
// info.json. `target` must be empty or not exist. Throws DataError.
void repack_with_images(const Dataset& source, const std::filesystem::path& target,
                        const RepackOptions& options = {});

}  // namespace wam::data
