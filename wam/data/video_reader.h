// Frames of video files by number, as RGB. Keeps files, packet indexes and decoders of the last
// clips, within bounds, so that the next clip costs its pictures only. One reader per thread; the
// index cache may be shared by all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "wam/data/video_index.h"
#include "wam/tensor/host_tensor.h"

namespace wam::data {

struct VideoReadCounts {
  int64_t frames_delivered = 0;
  int64_t packets_decoded = 0;
  int64_t packets_skipped = 0;
};

// Packet indexes of the files used last, up to a number of bytes. Thread-safe.
class VideoIndexCache {
 public:
  explicit VideoIndexCache(int64_t max_bytes = int64_t{256} << 20);
  ~VideoIndexCache();
  std::shared_ptr<const VideoIndex> get(const std::filesystem::path& path, int stream = -1);
  int64_t size_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class VideoReader {
 public:
  // `max_decoders` bounds the decoders and files kept open: cameras times files in use.
  explicit VideoReader(std::shared_ptr<VideoIndexCache> indexes = nullptr, int max_decoders = 8,
                       int stream = -1);
  ~VideoReader();

  // Index of a file, made if need be. Throws DataError as VideoIndex::build does.
  std::shared_ptr<const VideoIndex> index(const std::filesystem::path& path);
  // Frames in any order, repeats allowed -> [frames, height, width, 3] u8. Throws DataError: frame
  // beyond the end, damaged pictures, and as VideoIndex::build.
  HostTensor read(const std::filesystem::path& path, std::span<const int64_t> frames);
  // The same into memory of the caller, of that size exactly.
  void read_into(const std::filesystem::path& path, std::span<const int64_t> frames,
                 std::span<uint8_t> rgb);
  // The same one by one, in any order: `sink` gets the place in `frames` and the picture, which is
  // valid during the call.
  using Sink = std::function<void(size_t place, std::span<const uint8_t> rgb)>;
  void read_each(const std::filesystem::path& path, std::span<const int64_t> frames,
                 const Sink& sink);
  VideoReadCounts counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wam::data
