// Private to the video_* files: reading a video file by offset, and as FFmpeg's demuxers want it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "wam/base/file_descriptor.h"
#include "wam/data/video_ffmpeg.h"

namespace wam::data {

// An open video file. Reads do not move a shared position. Throws DataError for a file that is
// absent, empty or not regular.
class VideoFile {
 public:
  explicit VideoFile(const std::filesystem::path& path);
  const std::string& where() const { return where_; }
  int64_t size() const { return size_; }
  // Fills `target` from `offset`; DataError if the file ends before.
  void read(int64_t offset, std::span<uint8_t> target) const;
  // As many bytes as there are, up to target.size().
  size_t read_some(int64_t offset, std::span<uint8_t> target) const;

 private:
  std::string where_;
  FileDescriptor fd_;
  int64_t size_ = 0;
};

struct ByteRange {
  int64_t begin = 0, end = 0;
};
// The media data of an mp4 or mov file (contents of its mdat boxes), empty for other files. Throws
// DataError when a top-level box goes past the end of the file or when there is no index (moov):
// the file was cut short or never finished.
std::vector<ByteRange> find_media_data(const VideoFile& file);

// Feeds a demuxer from a VideoFile. Reads inside `holes` give zeros and touch no disk: to list the
// packets of an mp4 only its tables are needed, and files may be hundreds of megabytes long.
class DemuxInput {
 public:
  DemuxInput(const VideoFile& file, std::vector<ByteRange> holes);
  AVIOContext* get() { return io_.get(); }

 private:
  static int on_read(void* self, uint8_t* target, int count);
  static int64_t on_seek(void* self, int64_t offset, int whence);
  const VideoFile& file_;
  std::vector<ByteRange> holes_;
  int64_t position_ = 0;
  FfmpegOwned<AVIOContext> io_;
};

}  // namespace wam::data
