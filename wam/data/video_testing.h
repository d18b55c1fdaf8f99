// For tests: a plain, independent decode of a whole video, and small generated videos.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "wam/data/video_writer.h"

namespace wam::data {

// Folder of real data, or empty when the tests run without it.
inline std::filesystem::path real_data_folder() {
  const char* folder = std::getenv("WAM_DATA_DIR");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return {};
  return folder;
}

// Hash of every frame of the file as RGB, in the order in which FFmpeg's demuxer and decoder give
// them when the file is read from the start to the end.
std::vector<uint64_t> hash_all_frames(const std::filesystem::path& path, int stream = -1);

// A picture that differs for every frame and moves, so that codecs predict from neighbours.
std::vector<uint8_t> test_picture(int width, int height, int64_t frame);

void write_test_video(const std::filesystem::path& path, int width, int height, int num_frames,
                      double fps, const VideoWriterOptions& options);

}  // namespace wam::data
