#include "wam/data/video_testing.h"

#include <memory>
#include <utility>

#include "wam/base/hash.h"
#include "wam/data/video_convert.h"
#include "wam/data/video_ffmpeg.h"

extern "C" {
#include <libavutil/display.h>
}

namespace wam::data {
namespace {

int clockwise_turn(const AVStream& stream) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
  const AVPacketSideData* side =
      av_packet_side_data_get(stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data,
                              AV_PKT_DATA_DISPLAYMATRIX);
  const uint8_t* matrix = side == nullptr ? nullptr : side->data;
#else
  const uint8_t* matrix = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
#endif
  if (matrix == nullptr) return 0;
  const double angle = av_display_rotation_get(reinterpret_cast<const int32_t*>(matrix));
  return (static_cast<int>(-angle) % 360 + 360) % 360;
}

}  // namespace

std::vector<uint64_t> hash_all_frames(const std::filesystem::path& path, int stream) {
  capture_ffmpeg_log();
  AVFormatContext* opened = nullptr;
  check_ffmpeg(avformat_open_input(&opened, path.c_str(), nullptr, nullptr), path.string(), "open");
  const FfmpegOwned<AVFormatContext> demuxer(opened);
  check_ffmpeg(avformat_find_stream_info(opened, nullptr), path.string(), "probe");
  const int best = av_find_best_stream(opened, AVMEDIA_TYPE_VIDEO, stream, -1, nullptr, 0);
  check_ffmpeg(best, path.string(), "stream");
  const AVCodecParameters* parameters = opened->streams[best]->codecpar;
  const AVCodec* codec = avcodec_find_decoder(parameters->codec_id);
  const FfmpegOwned<AVCodecContext> decoder(avcodec_alloc_context3(codec));
  avcodec_parameters_to_context(decoder.get(), parameters);
  decoder->thread_count = 1;
  check_ffmpeg(avcodec_open2(decoder.get(), codec, nullptr), path.string(), "decoder");
  const FfmpegOwned<AVPacket> packet(av_packet_alloc());
  const FfmpegOwned<AVFrame> frame(av_frame_alloc());
  PictureConverter converter;
  const int rotation = clockwise_turn(*opened->streams[best]);
  std::vector<uint64_t> hashes;
  const auto collect = [&] {
    while (avcodec_receive_frame(decoder.get(), frame.get()) >= 0) {
      std::vector<uint8_t> rgb(static_cast<size_t>(frame->width) * frame->height * 3);
      converter.convert(*frame, rotation, rgb);
      hashes.push_back(hash64(std::as_bytes(std::span(rgb))));
    }
  };
  while (av_read_frame(opened, packet.get()) >= 0) {
    if (packet->stream_index == best) {
      avcodec_send_packet(decoder.get(), packet.get());
      collect();
    }
    av_packet_unref(packet.get());
  }
  avcodec_send_packet(decoder.get(), nullptr);
  collect();
  return hashes;
}

std::vector<uint8_t> test_picture(int width, int height, int64_t frame) {
  std::vector<uint8_t> rgb(static_cast<size_t>(width) * height * 3);
  size_t at = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x, at += 3) {
      const int64_t u = x + 3 * frame, v = y + frame;
      rgb[at] = static_cast<uint8_t>((u * 255 / width) & 255);
      rgb[at + 1] = static_cast<uint8_t>((v * 255 / height) & 255);
      rgb[at + 2] = static_cast<uint8_t>(((u / 8 + v / 8) % 2) * 120 + (frame * 37) % 100);
    }
  }
  return rgb;
}

void write_test_video(const std::filesystem::path& path, int width, int height, int num_frames,
                      double fps, const VideoWriterOptions& options) {
  VideoWriter writer(path, width, height, fps, options);
  for (int frame = 0; frame < num_frames; ++frame) writer.write(test_picture(width, height, frame));
  writer.finish();
}

}  // namespace wam::data
