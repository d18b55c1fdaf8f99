// Where every packet of a video file lies and which frame it makes: built once per file, then
// frames are decoded without any demuxer. Frames are numbered 0, 1, ... in order of presentation;
// pictures that an edit list hides have no number. Immutable and shared between threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace wam::data {

struct VideoPacket {
  int64_t offset = 0;  // in the file, or in `stored` of the index
  int32_t size = 0;
  int32_t presentation = 0;  // place in order of presentation among all packets
  bool is_key = false;
};

struct VideoStreamInfo {
  int64_t num_frames = 0;
  int width = 0, height = 0;   // of the pictures as read, after rotation
  int rotation = 0;            // 0, 90, 180, 270 degrees clockwise, applied to the pictures
  double fps = 0;              // frames by time between the first and the last; 0 for one frame
  double first_timestamp = 0;  // seconds
  std::string codec;           // "h264", "hevc", "av1", "vp9", "mpeg4"
};

class VideoIndex {
 public:
  // Throws DataError: absent, empty, cut short, no video stream, unsupported codec or container.
  // `stream` picks one stream of several (-1: the one FFmpeg takes for the best).
  static std::shared_ptr<const VideoIndex> build(const std::filesystem::path& path,
                                                 int stream = -1);
  ~VideoIndex();

  const std::filesystem::path& path() const;
  const VideoStreamInfo& info() const;
  int64_t num_frames() const { return info().num_frames; }
  // Seconds, as the container says.
  double timestamp(int64_t frame) const;
  int64_t size_bytes() const;  // memory held

  // For the decoder. Packets are in decoding order.
  const std::vector<VideoPacket>& packets() const;
  int32_t packet_of_frame(int64_t frame) const;
  int64_t frame_of_presentation(int64_t presentation) const;  // -1: hidden or none
  // The last key packet from which decoding makes this packet's picture.
  int32_t key_before(int32_t packet) const;
  const std::vector<uint8_t>& stored() const;  // packets' bytes when the file cannot give them
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  VideoIndex();
  std::unique_ptr<Impl> impl_;
};

}  // namespace wam::data
