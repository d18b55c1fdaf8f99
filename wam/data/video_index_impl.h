// Private to the video_* files: what VideoIndex keeps, with FFmpeg's types.
#pragma once

#include <filesystem>
#include <vector>

#include "wam/data/video_ffmpeg.h"
#include "wam/data/video_index.h"

namespace wam::data {

struct VideoIndex::Impl {
  std::filesystem::path path;
  VideoStreamInfo info;
  FfmpegOwned<AVCodecParameters> parameters;
  AVRational time_base{0, 1};
  int reorder_depth = 0;  // most packets decoded before a picture that is shown before them
  std::vector<VideoPacket> packets;          // decoding order
  std::vector<int32_t> frame_packets;        // frame -> packet
  std::vector<int32_t> presentation_frames;  // presentation -> frame, -1 where hidden
  std::vector<int32_t> key_packets;          // ascending
  std::vector<int64_t> frame_pts;            // frame -> pts in time_base
  std::vector<uint8_t> stored;
};

}  // namespace wam::data
