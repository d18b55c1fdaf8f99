// Private to the video_* files: opening FFmpeg's decoders, and which packets may be left out.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "wam/data/video_ffmpeg.h"

namespace wam::data {

// A single-threaded decoder. `reorder_depth` is how many pictures it must hold back to put them in
// order. Throws DataError when this FFmpeg has no decoder for the codec.
FfmpegOwned<AVCodecContext> open_decoder(const AVCodecParameters& parameters, int reorder_depth,
                                         const std::string& where);

// What must be known of a stream to judge a packet alone.
struct DisposableRule {
  AVCodecID codec = AV_CODEC_ID_NONE;
  int length_bytes = 0;         // h264, hevc: size of a NAL unit's length; 0: start codes
  int num_temporal_layers = 0;  // hevc; 0: not stated
};
DisposableRule make_disposable_rule(const AVCodecParameters& parameters);
// True if no other picture needs this packet, so that it may be left out when its own picture is
// not wanted. h264 by nal_ref_idc, hevc by sub-layer non-reference pictures of the highest layer,
// mpeg4 by B-VOPs; false when not sure.
bool is_disposable(const DisposableRule& rule, std::span<const uint8_t> packet);

}  // namespace wam::data
