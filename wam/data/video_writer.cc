#include "wam/data/video_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/file_descriptor.h"
#include "wam/base/files.h"
#include "wam/data/video_ffmpeg.h"

extern "C" {
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

namespace wam::data {
namespace {

struct EncoderChoice {
  const AVCodec* encoder = nullptr;
  std::string codec;  // LeRobot's name of the format
};

EncoderChoice choose_encoder(const std::string& codec) {
  struct Candidate {
    const char* codec;
    const char* encoder;
  };
  static constexpr std::array<Candidate, 7> kCandidates = {{{"h264", "libx264"},
                                                            {"h264", "libopenh264"},
                                                            {"hevc", "libx265"},
                                                            {"av1", "libaom-av1"},
                                                            {"av1", "libsvtav1"},
                                                            {"vp9", "libvpx-vp9"},
                                                            {"mpeg4", "mpeg4"}}};
  bool known = false;
  for (const Candidate& candidate : kCandidates) {
    if (codec != candidate.codec) continue;
    known = true;
    const AVCodec* encoder = avcodec_find_encoder_by_name(candidate.encoder);
    if (encoder != nullptr) return {encoder, codec};
  }
  if (!known) {
    throw ConfigError({.where = "video codec",
                       .what = "unknown codec",
                       .got = codec,
                       .expected = "h264, hevc, av1, vp9 or mpeg4",
                       .remedy = "Choose one of these."});
  }
  const AVCodec* fallback = avcodec_find_encoder(AV_CODEC_ID_MPEG4);
  if (fallback == nullptr) {
    throw ConfigError({.where = "video codec",
                       .what = "this FFmpeg has no video encoder",
                       .got = codec,
                       .remedy = "Install FFmpeg's libraries with libx264."});
  }
  return {fallback, "mpeg4"};
}

// Options that an encoder lacks are ignored by design: each encoder has its own names.
void set_option(AVCodecContext* encoder, const char* name, const std::string& value) {
  av_opt_set(encoder->priv_data, name, value.c_str(), 0);
}

void set_quality(AVCodecContext* encoder, const VideoWriterOptions& options) {
  const std::string name = encoder->codec->name;
  set_option(encoder, "crf", std::to_string(options.crf));
  if (name == "libx264") {
    set_option(encoder, "preset", options.fast ? "veryfast" : "medium");
    // Key frames at every gop, and only there. x264's AVX-512 code gives other bytes than its plain
    // code, and for pictures of a few macroblocks not always the same ones: cpu-independent.
    set_option(encoder, "x264-params", "scenecut=0:cpu-independent=1");
  } else if (name == "libx265") {
    set_option(encoder, "preset", options.fast ? "veryfast" : "medium");
    set_option(encoder, "x265-params", "log-level=none:pools=1:frame-threads=1:scenecut=0");
  } else if (name == "libsvtav1") {
    set_option(encoder, "preset", options.fast ? "12" : "8");
    set_option(encoder, "svtav1-params", "lp=1");
  } else if (name == "libaom-av1" || name == "libvpx-vp9") {
    set_option(encoder, "cpu-used", options.fast ? "8" : "4");
    set_option(encoder, "usage", "realtime");
    set_option(encoder, "deadline", "realtime");
  } else if (name == "mpeg4") {
    encoder->flags |= AV_CODEC_FLAG_QSCALE;
    encoder->global_quality = 3 * FF_QP2LAMBDA;
  }
}

AVPixelFormat find_pixel_format(const std::string& text) {
  const AVPixelFormat format = av_get_pix_fmt(text.c_str());
  if (format != AV_PIX_FMT_NONE) return format;
  throw ConfigError({.where = "video pixel format",
                     .what = "FFmpeg knows no such pixel format",
                     .got = text,
                     .expected = "a name as yuv420p, yuv444p, yuv420p10le",
                     .remedy = "Choose one FFmpeg lists under -pix_fmts."});
}

void check_picture_size(int width, int height, AVPixelFormat format) {
  int shift_x = 0, shift_y = 0;
  av_pix_fmt_get_chroma_sub_sample(format, &shift_x, &shift_y);
  const bool fits = width % (1 << shift_x) == 0 && height % (1 << shift_y) == 0;
  if (width >= 16 && height >= 16 && width <= 16384 && height <= 16384 && fits) return;
  throw ConfigError({.where = "video size",
                     .what = "size cannot be encoded",
                     .got = std::to_string(height) + "x" + std::to_string(width),
                     .expected = "16 to 16384 a side, even sides with 4:2:0 colour",
                     .remedy = "Choose another size."});
}

// FFmpeg writes and re-reads a named file (faststart), so this is not an AtomicFile; the name is
// one that is_temporary_name() knows.
std::filesystem::path temporary_path(const std::filesystem::path& path) {
  const std::string name =
      "." + path.filename().string() + ".wam-tmp-" + std::to_string(::getpid()) + "-video";
  return path.parent_path() / name;
}

void flush_to_disk(const std::filesystem::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || ::fsync(file.get()) != 0) throw_io_error(path, "cannot flush", errno);
}

}  // namespace

struct VideoWriter::Impl {
  std::filesystem::path path, temp_path;
  std::string where;
  std::string codec, pixel_format;
  int width = 0, height = 0;
  int64_t num_frames = 0;
  bool finished = false;
  FfmpegOwned<AVFormatContext> muxer;
  FfmpegOwned<AVCodecContext> encoder;
  FfmpegOwned<AVFrame> frame;
  FfmpegOwned<AVPacket> packet;
  FfmpegOwned<SwsContext> scaler;
  AVStream* stream = nullptr;

  ~Impl() {
    if (muxer != nullptr && muxer->pb != nullptr) avio_closep(&muxer->pb);
    // avformat_close_input is for readers; a muxer is freed alone.
    avformat_free_context(muxer.release());
    if (finished || temp_path.empty()) return;
    std::error_code ignored;
    std::filesystem::remove(temp_path, ignored);
  }
  void open_encoder(double fps, const VideoWriterOptions& options);
  void open_file();
  void open_scaler();
  void drain();
};

void VideoWriter::Impl::open_encoder(double fps, const VideoWriterOptions& options) {
  const EncoderChoice choice = choose_encoder(options.codec);
  const AVPixelFormat format = find_pixel_format(options.pixel_format);
  check_picture_size(width, height, format);
  const AVRational rate = av_d2q(fps, 1001000);
  if (rate.num <= 0 || rate.den <= 0) {
    throw ConfigError({.where = "video fps",
                       .got = std::to_string(fps),
                       .expected = "above 0",
                       .remedy = "Choose a positive rate."});
  }
  codec = choice.codec;
  pixel_format = options.pixel_format;
  encoder.reset(avcodec_alloc_context3(choice.encoder));
  if (encoder == nullptr) throw std::bad_alloc();
  encoder->width = width;
  encoder->height = height;
  encoder->pix_fmt = format;
  encoder->time_base = av_inv_q(rate);
  encoder->framerate = rate;
  encoder->gop_size = options.gop;
  encoder->keyint_min = options.gop;
  encoder->max_b_frames = options.b_frames;
  encoder->thread_count = 1;
  encoder->colorspace = AVCOL_SPC_SMPTE170M;
  encoder->color_primaries = AVCOL_PRI_SMPTE170M;
  encoder->color_trc = AVCOL_TRC_SMPTE170M;
  encoder->color_range = AVCOL_RANGE_MPEG;
  // The same input gives the same bytes: no build strings.
  encoder->flags |= AV_CODEC_FLAG_BITEXACT;
  if ((muxer->oformat->flags & AVFMT_GLOBALHEADER) != 0) {
    encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  }
  set_quality(encoder.get(), options);
  const int code = avcodec_open2(encoder.get(), choice.encoder, nullptr);
  if (code < 0) {
    throw ConfigError({.where = where,
                       .what = std::string("encoder ") + choice.encoder->name + " refuses",
                       .got = ffmpeg_error(code),
                       .remedy = "Choose another codec, pixel format or size."});
  }
}

void VideoWriter::Impl::open_file() {
  stream = avformat_new_stream(muxer.get(), nullptr);
  if (stream == nullptr) throw std::bad_alloc();
  check_ffmpeg(avcodec_parameters_from_context(stream->codecpar, encoder.get()), where,
               "cannot describe the stream");
  stream->time_base = encoder->time_base;
  stream->avg_frame_rate = encoder->framerate;
  muxer->flags |= AVFMT_FLAG_BITEXACT;
  check_ffmpeg(avio_open(&muxer->pb, temp_path.c_str(), AVIO_FLAG_WRITE), where,
               "cannot create the video file", "Check that the folder exists and is writable.");
  AVDictionary* options = nullptr;
  av_dict_set(&options, "movflags", "+faststart", 0);
  const int code = avformat_write_header(muxer.get(), &options);
  av_dict_free(&options);
  check_ffmpeg(code, where, "cannot write the video header");
}

void VideoWriter::Impl::open_scaler() {
  frame.reset(av_frame_alloc());
  packet.reset(av_packet_alloc());
  scaler.reset(sws_getContext(width, height, AV_PIX_FMT_RGB24, width, height, encoder->pix_fmt,
                              SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, nullptr, nullptr,
                              nullptr));
  if (frame == nullptr || packet == nullptr || scaler == nullptr) throw std::bad_alloc();
  const int* bt601 = sws_getCoefficients(SWS_CS_ITU601);
  sws_setColorspaceDetails(scaler.get(), bt601, 1, bt601, 0, 0, 1 << 16, 1 << 16);
  frame->width = width;
  frame->height = height;
  frame->format = encoder->pix_fmt;
  frame->color_range = AVCOL_RANGE_MPEG;
  frame->colorspace = AVCOL_SPC_SMPTE170M;
  check_ffmpeg(av_frame_get_buffer(frame.get(), 0), where, "cannot allocate a picture");
}

void VideoWriter::Impl::drain() {
  while (true) {
    const int code = avcodec_receive_packet(encoder.get(), packet.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
    check_ffmpeg(code, where, "cannot encode a picture");
    av_packet_rescale_ts(packet.get(), encoder->time_base, stream->time_base);
    packet->stream_index = stream->index;
    check_ffmpeg(av_interleaved_write_frame(muxer.get(), packet.get()), where,
                 "cannot write the video", "Check the free space on the disk.");
  }
}

VideoWriter::VideoWriter(const std::filesystem::path& path, int width, int height, double fps,
                         const VideoWriterOptions& options)
    : impl_(std::make_unique<Impl>()) {
  capture_ffmpeg_log();
  impl_->path = path;
  impl_->where = path.string();
  impl_->width = width;
  impl_->height = height;
  impl_->temp_path = temporary_path(path);
  auto* container = av_guess_format(nullptr, path.c_str(), nullptr);
  if (container == nullptr) {
    throw ConfigError({.where = path.string(),
                       .what = "no video container for this file name",
                       .remedy = "Use the ending .mp4."});
  }
  AVFormatContext* muxer = nullptr;
  avformat_alloc_output_context2(&muxer, container, nullptr, impl_->temp_path.c_str());
  if (muxer == nullptr) throw std::bad_alloc();
  impl_->muxer.reset(muxer);
  impl_->open_encoder(fps, options);
  impl_->open_file();
  impl_->open_scaler();
}

VideoWriter::~VideoWriter() = default;

void VideoWriter::write(std::span<const uint8_t> rgb_hwc) {
  Impl& self = *impl_;
  WAM_CHECK(!self.finished) << self.where;
  WAM_CHECK(rgb_hwc.size() == static_cast<size_t>(self.width) * self.height * 3) << rgb_hwc.size();
  check_ffmpeg(av_frame_make_writable(self.frame.get()), self.where, "cannot allocate a picture");
  const uint8_t* source[1] = {rgb_hwc.data()};
  const int stride[1] = {self.width * 3};
  sws_scale(self.scaler.get(), source, stride, 0, self.height, self.frame->data,
            self.frame->linesize);
  self.frame->pts = self.num_frames++;
  self.frame->pict_type = AV_PICTURE_TYPE_NONE;
  check_ffmpeg(avcodec_send_frame(self.encoder.get(), self.frame.get()), self.where,
               "cannot encode a picture");
  self.drain();
}

void VideoWriter::finish() {
  Impl& self = *impl_;
  WAM_CHECK(!self.finished) << self.where;
  check_ffmpeg(avcodec_send_frame(self.encoder.get(), nullptr), self.where, "cannot flush");
  self.drain();
  const std::string remedy = "Check the free space on the disk.";
  check_ffmpeg(av_write_trailer(self.muxer.get()), self.where, "cannot finish the video", remedy);
  check_ffmpeg(avio_closep(&self.muxer->pb), self.where, "cannot finish the video", remedy);
  flush_to_disk(self.temp_path);
  rename_durably(self.temp_path, self.path);
  self.finished = true;
}

int64_t VideoWriter::num_frames() const { return impl_->num_frames; }
const std::string& VideoWriter::codec() const { return impl_->codec; }
const std::string& VideoWriter::pixel_format() const { return impl_->pixel_format; }

}  // namespace wam::data
