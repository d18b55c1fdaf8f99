// Private to the video_* files: owners for FFmpeg's objects and errors in this project's form.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>

namespace wam::data {

struct FfmpegDeleter {
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVCodecParameters* parameters) const { avcodec_parameters_free(&parameters); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
  void operator()(AVBufferPool* pool) const { av_buffer_pool_uninit(&pool); }
  void operator()(AVIOContext* io) const {
    av_freep(&io->buffer);
    avio_context_free(&io);
  }
};
template <typename T>
using FfmpegOwned = std::unique_ptr<T, FfmpegDeleter>;

// Silences FFmpeg's own log and keeps each thread's last error line for ffmpeg_error().
void capture_ffmpeg_log();
// "Invalid data found when processing input (moov atom not found)": text of `code` and what this
// thread's FFmpeg calls logged last, which is then forgotten.
std::string ffmpeg_error(int code);
// Throws DataError "[where] what, got <ffmpeg_error>" when code < 0.
void check_ffmpeg(int code, const std::string& where, const std::string& what,
                  const std::string& remedy = "");

}  // namespace wam::data
