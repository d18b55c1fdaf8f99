// Encodes RGB pictures into a video file of constant frame rate (mp4, mkv, ... by the file's name).
// Writes under a temporary name and renames in finish(), so a file of the final name is whole.
// Single-threaded. The same pictures give the same bytes, save with x265 and with B-frames of x264,
// whose choices are not repeatable. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace wam::data {

struct VideoWriterOptions {
  // "h264" (libx264, else libopenh264), "hevc", "av1", "vp9" or "mpeg4". A codec whose encoder this
  // FFmpeg lacks is replaced by mpeg4; codec() says what was taken.
  std::string codec = "h264";
  int gop = 12;      // frames from key frame to key frame; 1: every frame is a key frame
  int b_frames = 0;  // consecutive B-frames at most (h264, hevc, mpeg4)
  int crf = 23;      // constant quality of x264/x265/SVT-AV1/VP9; ignored by mpeg4
  // Pixel format by FFmpeg's name. Colours are written as BT.601 limited range and tagged so.
  std::string pixel_format = "yuv420p";
  bool fast = true;  // the encoder's quick preset: the built-in world records thousands of frames
};

class VideoWriter {
 public:
  // Throws DataError when the file cannot be made, ConfigError when no encoder can do what is asked
  // (odd sizes with yuv420p, sizes under 16).
  VideoWriter(const std::filesystem::path& path, int width, int height, double fps,
              const VideoWriterOptions& options = {});
  ~VideoWriter();  // without finish(): removes what was written
  VideoWriter(const VideoWriter&) = delete;
  VideoWriter& operator=(const VideoWriter&) = delete;

  // One picture, height x width x 3 bytes, RGB, row-major. Throws DataError (disk full).
  void write(std::span<const uint8_t> rgb_hwc);
  // Flushes, writes the index (faststart in mp4), syncs to disk and renames. Must be called once.
  void finish();

  int64_t num_frames() const;
  const std::string& codec() const;         // as info.json's "video.codec": "h264", "mpeg4", ...
  const std::string& pixel_format() const;  // as info.json's "video.pix_fmt"

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wam::data
