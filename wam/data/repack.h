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

struct RepackV3Options {
  // A file takes episodes until the next one would make it larger than this, as LeRobot's does.
  int64_t data_file_bytes = int64_t{100} << 20;
  int64_t video_file_bytes = int64_t{200} << 20;
  int64_t episodes_per_file = 0;  // 0: no other limit
};

// A v2.0 or v2.1 dataset as v3.0: tables, videos (packets copied, nothing encoded again), tasks and
// statistics. Discarded episodes are left out. `target` must be empty or not exist. Throws
// DataError.
void repack_as_v3(const std::filesystem::path& source, const std::filesystem::path& target,
                  const RepackV3Options& options = {});

// Throws DataError unless `target` is an empty folder or does not exist.
void require_new_folder(const std::filesystem::path& target);

}  // namespace wam::data
