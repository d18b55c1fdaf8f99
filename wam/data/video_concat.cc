#include "wam/data/video_concat.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/file_descriptor.h"
#include "wam/base/files.h"
#include "wam/data/video_ffmpeg.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

// Ticks of a frame in the file written: divides well, and the decode order fits between.
constexpr int64_t kTicksPerFrame = 512;

// A source's packets, one picture each.
struct Source {
  FfmpegOwned<AVFormatContext> demuxer;
  const AVStream* stream = nullptr;
  std::string where;

  explicit Source(const fs::path& path) : where(path.string()) {
    AVFormatContext* context = nullptr;
    check_ffmpeg(avformat_open_input(&context, path.c_str(), nullptr, nullptr), where,
                 "cannot open the video", "Restore the file.");
    demuxer.reset(context);
    check_ffmpeg(avformat_find_stream_info(context, nullptr), where, "cannot read the video",
                 "Restore the file.");
    const int best = av_find_best_stream(context, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    check_ffmpeg(best, where, "no video stream", "Restore the file.");
    stream = context->streams[best];
  }

  std::vector<FfmpegOwned<AVPacket>> packets() {
    std::vector<FfmpegOwned<AVPacket>> packets;
    while (true) {
      FfmpegOwned<AVPacket> packet(av_packet_alloc());
      if (packet == nullptr) throw std::bad_alloc();
      const int code = av_read_frame(demuxer.get(), packet.get());
      if (code == AVERROR_EOF) return packets;
      check_ffmpeg(code, where, "cannot read the video", "Restore the file.");
      if (packet->stream_index != stream->index) continue;
      if ((packet->flags & AV_PKT_FLAG_DISCARD) != 0) {
        throw DataError({.where = where,
                         .what = "an edit list hides some of the pictures",
                         .remedy = "Encode the video again: hidden pictures cannot be copied."});
      }
      packets.push_back(std::move(packet));
    }
  }
};

bool same_parameters(const AVCodecParameters& a, const AVCodecParameters& b) {
  return a.codec_id == b.codec_id && a.width == b.width && a.height == b.height &&
         a.format == b.format && a.extradata_size == b.extradata_size &&
         (a.extradata_size == 0 ||
          std::memcmp(a.extradata, b.extradata, static_cast<size_t>(a.extradata_size)) == 0);
}

// Place of each packet in order of presentation.
std::vector<int64_t> presentation_ranks(const std::vector<FfmpegOwned<AVPacket>>& packets,
                                        const std::string& where) {
  std::vector<std::pair<int64_t, size_t>> shown;
  for (size_t i = 0; i < packets.size(); ++i) shown.emplace_back(packets[i]->pts, i);
  std::sort(shown.begin(), shown.end());
  std::vector<int64_t> ranks(packets.size());
  for (size_t rank = 0; rank < shown.size(); ++rank) {
    const bool twice = rank > 0 && shown[rank].first == shown[rank - 1].first;
    if (twice || shown[rank].first == AV_NOPTS_VALUE) {
      throw DataError({.where = where,
                       .what = "pictures without a time of their own cannot be joined",
                       .remedy = "Encode the video again at a constant frame rate."});
    }
    ranks[shown[rank].second] = static_cast<int64_t>(rank);
  }
  return ranks;
}

fs::path temporary_path(const fs::path& path) {
  return path.parent_path() /
         ("." + path.filename().string() + ".wam-tmp-" + std::to_string(::getpid()) + "-concat");
}

void flush_to_disk(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || ::fsync(file.get()) != 0) throw_io_error(path, "cannot flush", errno);
}

}  // namespace

struct VideoConcat::Impl {
  fs::path path, temp_path;
  std::string where;
  AVRational time_base{1, 1};
  AVRational rate{1, 1};
  FfmpegOwned<AVFormatContext> muxer;
  FfmpegOwned<AVCodecParameters> parameters;  // of the first source
  AVStream* stream = nullptr;
  int64_t num_frames = 0, size_bytes = 0, last_dts = std::numeric_limits<int64_t>::min();
  bool finished = false;

  ~Impl() {
    if (muxer != nullptr && muxer->pb != nullptr) avio_closep(&muxer->pb);
    avformat_free_context(muxer.release());
    if (finished || temp_path.empty()) return;
    std::error_code ignored;
    fs::remove(temp_path, ignored);
  }
  void open(const Source& source);
  void write(AVPacket& packet, int64_t rank, int64_t delay, int64_t i);
};

VideoConcat::VideoConcat(const fs::path& path, double fps) : impl_(std::make_unique<Impl>()) {
  capture_ffmpeg_log();
  impl_->path = path;
  impl_->where = path.string();
  impl_->temp_path = temporary_path(path);
  impl_->rate = av_d2q(fps, 1001000);
  WAM_CHECK(impl_->rate.num > 0 && impl_->rate.den > 0) << fps;
  impl_->time_base = av_mul_q(av_inv_q(impl_->rate), {1, static_cast<int>(kTicksPerFrame)});
}
VideoConcat::~VideoConcat() = default;

void VideoConcat::Impl::open(const Source& source) {
  AVFormatContext* context = nullptr;
  avformat_alloc_output_context2(&context, nullptr, "mp4", temp_path.c_str());
  if (context == nullptr) throw std::bad_alloc();
  muxer.reset(context);
  parameters.reset(avcodec_parameters_alloc());
  stream = avformat_new_stream(context, nullptr);
  if (stream == nullptr || parameters == nullptr) throw std::bad_alloc();
  check_ffmpeg(avcodec_parameters_copy(parameters.get(), source.stream->codecpar), where,
               "cannot describe the stream");
  check_ffmpeg(avcodec_parameters_copy(stream->codecpar, source.stream->codecpar), where,
               "cannot describe the stream");
  stream->codecpar->codec_tag = 0;  // the container's own
  stream->time_base = time_base;
  stream->avg_frame_rate = rate;
  muxer->flags |= AVFMT_FLAG_BITEXACT;
  check_ffmpeg(avio_open(&muxer->pb, temp_path.c_str(), AVIO_FLAG_WRITE), where,
               "cannot create the video file", "Check that the folder exists and is writable.");
  AVDictionary* options = nullptr;
  av_dict_set(&options, "movflags", "+faststart", 0);
  const int code = avformat_write_header(muxer.get(), &options);
  av_dict_free(&options);
  check_ffmpeg(code, where, "cannot write the video header");
}

// Packet i in order of decoding is shown at `rank`; it is decoded `delay` frames before place i so
// that no picture is shown before it is decoded.
void VideoConcat::Impl::write(AVPacket& packet, int64_t rank, int64_t delay, int64_t i) {
  packet.pts = (num_frames + rank) * kTicksPerFrame;
  packet.dts = std::max((num_frames + i - delay) * kTicksPerFrame, last_dts + 1);
  WAM_CHECK(packet.dts <= packet.pts) << where;
  last_dts = packet.dts;
  packet.duration = kTicksPerFrame;
  packet.pos = -1;
  packet.stream_index = stream->index;
  size_bytes += packet.size;
  av_packet_rescale_ts(&packet, time_base, stream->time_base);
  check_ffmpeg(av_interleaved_write_frame(muxer.get(), &packet), where, "cannot write the video",
               "Check the free space on the disk.");
}

bool VideoConcat::fits(const fs::path& source) const {
  if (impl_->parameters == nullptr) return true;
  return same_parameters(*impl_->parameters, *Source(source).stream->codecpar);
}

int64_t VideoConcat::append(const fs::path& path) {
  Impl& self = *impl_;
  WAM_CHECK(!self.finished) << self.where;
  Source source(path);
  if (self.muxer == nullptr) self.open(source);
  if (!same_parameters(*self.parameters, *source.stream->codecpar)) {
    throw DataError({.where = source.where,
                     .what = "video has other parameters than those before it",
                     .expected = "one codec, size and setting in a file",
                     .remedy = "Start another file with it."});
  }
  std::vector<FfmpegOwned<AVPacket>> packets = source.packets();
  const std::vector<int64_t> ranks = presentation_ranks(packets, source.where);
  int64_t delay = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    delay = std::max(delay, static_cast<int64_t>(i) - ranks[i]);
  }
  for (size_t i = 0; i < packets.size(); ++i) {
    self.write(*packets[i], ranks[i], delay, static_cast<int64_t>(i));
  }
  self.num_frames += std::ssize(packets);
  return std::ssize(packets);
}

int64_t VideoConcat::num_frames() const { return impl_->num_frames; }
int64_t VideoConcat::size_bytes() const { return impl_->size_bytes; }

void VideoConcat::finish() {
  Impl& self = *impl_;
  WAM_CHECK(!self.finished && self.muxer != nullptr) << self.where;
  const std::string remedy = "Check the free space on the disk.";
  check_ffmpeg(av_write_trailer(self.muxer.get()), self.where, "cannot finish the video", remedy);
  check_ffmpeg(avio_closep(&self.muxer->pb), self.where, "cannot finish the video", remedy);
  flush_to_disk(self.temp_path);
  rename_durably(self.temp_path, self.path);
  self.finished = true;
}

}  // namespace wam::data
