#include "wam/data/video_codec.h"

#include <algorithm>

#include "wam/base/error.h"

namespace wam::data {
namespace {

const AVCodec* find_decoder(AVCodecID codec) {
  // FFmpeg's own AV1 decoder works on hardware only.
  if (codec == AV_CODEC_ID_AV1) {
    for (const char* name : {"libdav1d", "libaom-av1"}) {
      const AVCodec* decoder = avcodec_find_decoder_by_name(name);
      if (decoder != nullptr) return decoder;
    }
  }
  return avcodec_find_decoder(codec);
}

// Calls visit(header bytes of a NAL unit) until it returns false; false if the packet is malformed.
template <typename Visit>
bool for_each_nal(std::span<const uint8_t> packet, int length_bytes, Visit&& visit) {
  const size_t step = static_cast<size_t>(length_bytes);
  while (!packet.empty()) {
    if (packet.size() < step) return false;
    size_t length = 0;
    for (size_t i = 0; i < step; ++i) length = (length << 8) | packet[i];
    packet = packet.subspan(step);
    if (length > packet.size()) return false;
    if (length >= 2 && !visit(packet.first(length))) return false;
    packet = packet.subspan(length);
  }
  return true;
}

bool is_disposable_h264(std::span<const uint8_t> packet, int length_bytes) {
  bool has_picture = false;
  const bool whole = for_each_nal(packet, length_bytes, [&](std::span<const uint8_t> nal) {
    const int type = nal[0] & 31, reference = (nal[0] >> 5) & 3;
    if (type == 7 || type == 8) return false;  // parameter sets must reach the decoder
    if (type < 1 || type > 5) return true;
    has_picture = true;
    return reference == 0;
  });
  return whole && has_picture;
}

bool is_disposable_hevc(std::span<const uint8_t> packet, const DisposableRule& rule) {
  if (rule.num_temporal_layers < 1) return false;
  bool has_picture = false;
  const bool whole = for_each_nal(packet, rule.length_bytes, [&](std::span<const uint8_t> nal) {
    const int type = (nal[0] >> 1) & 63, layer = nal[1] & 7;
    if (type >= 32 && type <= 34) return false;  // parameter sets
    if (type > 31) return true;
    has_picture = true;
    // Types 0, 2, ... 14 are not referred to by pictures of their own temporal layer; only in the
    // highest layer is there nothing above that could.
    return type <= 14 && type % 2 == 0 && layer == rule.num_temporal_layers;
  });
  return whole && has_picture;
}

bool is_disposable_mpeg4(std::span<const uint8_t> packet) {
  static constexpr uint8_t kVopStart[4] = {0, 0, 1, 0xB6};
  auto vop = std::search(packet.begin(), packet.end(), std::begin(kVopStart), std::end(kVopStart));
  if (vop == packet.end() || packet.end() - vop < 5) return false;
  constexpr int kBVop = 2;
  if ((vop[4] >> 6) != kBVop) return false;
  // A second picture in the same packet may be needed.
  return std::search(vop + 4, packet.end(), std::begin(kVopStart), std::end(kVopStart)) ==
         packet.end();
}

}  // namespace

FfmpegOwned<AVCodecContext> open_decoder(const AVCodecParameters& parameters, int reorder_depth,
                                         const std::string& where) {
  const AVCodec* codec = find_decoder(parameters.codec_id);
  if (codec == nullptr) {
    throw DataError({.where = where,
                     .what = "this FFmpeg has no decoder for the video's codec",
                     .got = avcodec_get_name(parameters.codec_id),
                     .remedy = "Install FFmpeg's libraries with it (libdav1d for AV1)."});
  }
  FfmpegOwned<AVCodecContext> decoder(avcodec_alloc_context3(codec));
  if (decoder == nullptr) throw std::bad_alloc();
  check_ffmpeg(avcodec_parameters_to_context(decoder.get(), &parameters), where,
               "cannot set up the decoder");
  // Threads work on different clips; frame threads would only add delay and memory.
  decoder->thread_count = 1;
  decoder->has_b_frames = std::max(decoder->has_b_frames, reorder_depth);
  check_ffmpeg(avcodec_open2(decoder.get(), codec, nullptr), where, "cannot open the decoder");
  return decoder;
}

DisposableRule make_disposable_rule(const AVCodecParameters& parameters) {
  DisposableRule rule{.codec = parameters.codec_id};
  const std::span<const uint8_t> extra(parameters.extradata,
                                       static_cast<size_t>(parameters.extradata_size));
  // avcC and hvcC both start with version 1; anything else is a stream with start codes.
  if (rule.codec == AV_CODEC_ID_H264 && extra.size() >= 7 && extra[0] == 1) {
    rule.length_bytes = (extra[4] & 3) + 1;
  }
  if (rule.codec == AV_CODEC_ID_HEVC && extra.size() >= 23 && extra[0] == 1) {
    rule.length_bytes = (extra[21] & 3) + 1;
    rule.num_temporal_layers = (extra[21] >> 3) & 7;
  }
  return rule;
}

bool is_disposable(const DisposableRule& rule, std::span<const uint8_t> packet) {
  if (rule.codec == AV_CODEC_ID_MPEG4) return is_disposable_mpeg4(packet);
  if (rule.length_bytes == 0) return false;
  if (rule.codec == AV_CODEC_ID_H264) return is_disposable_h264(packet, rule.length_bytes);
  if (rule.codec == AV_CODEC_ID_HEVC) return is_disposable_hevc(packet, rule);
  return false;
}

}  // namespace wam::data
