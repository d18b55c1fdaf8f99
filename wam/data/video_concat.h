// Joins video files into one without decoding, as LeRobot v3.0 stores episodes: packets are copied,
// and file k's frames follow those of file k-1 at the constant frame rate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

namespace wam::data {

// An mp4 being joined. The file appears under its name in finish(), whole. Not thread-safe.
class VideoConcat {
 public:
  VideoConcat(const std::filesystem::path& path, double fps);
  ~VideoConcat();  // without finish(): removes what was written
  VideoConcat(const VideoConcat&) = delete;
  VideoConcat& operator=(const VideoConcat&) = delete;

  // True if the file's stream has the parameters of those before it: only then can it follow.
  bool fits(const std::filesystem::path& source) const;
  // Appends a file's pictures and returns how many. Throws DataError: unreadable, other parameters,
  // more than one picture at a time, disk full.
  int64_t append(const std::filesystem::path& source);
  int64_t num_frames() const;
  int64_t size_bytes() const;  // of the packets so far
  // Writes the index (faststart), syncs to disk and renames. Must be called once, after append().
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wam::data
