#include "wam/data/video_index.h"

extern "C" {
#include <libavutil/display.h>
}

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/data/video_codec.h"
#include "wam/data/video_index_impl.h"
#include "wam/data/video_io.h"

namespace wam::data {
namespace {

// Packets kept in memory when a container scatters or transforms them.
constexpr int64_t kMaxStoredBytes = int64_t{1} << 28;
constexpr int64_t kMaxPackets = int64_t{1} << 26;
// The most pictures any supported codec holds back.
constexpr int32_t kMaxReorder = 16;

struct Demuxed {
  VideoPacket packet;
  int64_t pts = AV_NOPTS_VALUE;
  bool is_hidden = false;
};

class IndexBuilder {
 public:
  IndexBuilder(const std::filesystem::path& path, VideoIndex::Impl& out)
      : file_(path), media_(find_media_data(file_)), is_mp4_(!media_.empty()), out_(out) {
    out_.path = path;
  }
  void build(int stream);

 private:
  void open(bool with_pictures);
  void choose_stream(int stream);
  void read_rotation(const AVStream& stream);
  void read_packets();
  void add_packet(const AVPacket& packet);
  int64_t locate(const AVPacket& packet);
  void order_by_decoding();
  std::vector<int32_t> decode_order();
  void order_by_time();
  void number_frames(const std::vector<int32_t>& presentation_order);
  void measure_reorder();
  void fill_info();
  [[noreturn]] void fail(const std::string& what, const std::string& got) const;

  VideoFile file_;
  std::vector<ByteRange> media_;
  bool is_mp4_;
  std::unique_ptr<DemuxInput> input_;
  VideoIndex::Impl& out_;
  FfmpegOwned<AVFormatContext> demuxer_;
  AVStream* stream_ = nullptr;
  std::vector<Demuxed> demuxed_;
  int degrees_ = 0;
};

void IndexBuilder::fail(const std::string& what, const std::string& got) const {
  throw DataError({.where = file_.where(),
                   .what = what,
                   .got = got,
                   .remedy = "Restore the file, re-encode it as mp4, or leave the episode out."});
}

// An mp4's tables say everything but, for a few codecs, the picture size: then, and for other
// containers, the demuxer gets to see (and decode) the first pictures.
void IndexBuilder::open(bool with_pictures) {
  demuxer_.reset();
  input_ = std::make_unique<DemuxInput>(file_, with_pictures ? std::vector<ByteRange>() : media_);
  AVFormatContext* demuxer = avformat_alloc_context();
  if (demuxer == nullptr) throw std::bad_alloc();
  demuxer->pb = input_->get();
  demuxer->flags |= AVFMT_FLAG_CUSTOM_IO;
  if (is_mp4_) demuxer->flags |= AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN;
  const std::string remedy = "Restore the file, or leave the episode out.";
  const int code = avformat_open_input(&demuxer, nullptr, nullptr, nullptr);
  check_ffmpeg(code, file_.where(), "video cannot be opened", remedy);
  demuxer_.reset(demuxer);
  if (!with_pictures) return;
  check_ffmpeg(avformat_find_stream_info(demuxer, nullptr), file_.where(), "video cannot be opened",
               remedy);
}

void IndexBuilder::choose_stream(int stream) {
  const int found = av_find_best_stream(demuxer_.get(), AVMEDIA_TYPE_VIDEO, stream, -1, nullptr, 0);
  if (found < 0) fail("file has no such video stream", ffmpeg_error(found));
  stream_ = demuxer_->streams[found];
  for (unsigned i = 0; i < demuxer_->nb_streams; ++i) {
    if (static_cast<int>(i) != found) demuxer_->streams[i]->discard = AVDISCARD_ALL;
  }
  out_.time_base = stream_->time_base;
  out_.parameters.reset(avcodec_parameters_alloc());
  if (out_.parameters == nullptr) throw std::bad_alloc();
  check_ffmpeg(avcodec_parameters_copy(out_.parameters.get(), stream_->codecpar), file_.where(),
               "cannot read the stream's parameters");
  read_rotation(*stream_);
}

void IndexBuilder::read_rotation(const AVStream& stream) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
  const AVPacketSideData* side =
      av_packet_side_data_get(stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data,
                              AV_PKT_DATA_DISPLAYMATRIX);
  const uint8_t* matrix = side == nullptr ? nullptr : side->data;
#else
  const uint8_t* matrix = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
#endif
  if (matrix == nullptr) return;
  const double angle = av_display_rotation_get(reinterpret_cast<const int32_t*>(matrix));
  // FFmpeg counts counter-clockwise.
  const double turns = std::isnan(angle) ? 0.5 : -angle / 90.0;
  if (turns != std::round(turns)) {
    fail("video is to be shown turned by an angle that is not a quarter turn",
         std::to_string(-angle) + " degrees");
  }
  degrees_ = ((static_cast<int>(turns) % 4 + 4) % 4) * 90;
}

// Offset of the packet's bytes in the file, or in `stored`, where they are put if the file does not
// hold them in one piece.
int64_t IndexBuilder::locate(const AVPacket& packet) {
  const int64_t size = packet.size;
  if (is_mp4_) {
    if (packet.pos < 0 || packet.pos > file_.size() - size) {
      fail("packet lies outside the file", "byte " + std::to_string(packet.pos));
    }
    return packet.pos;
  }
  const auto* begin = packet.data;
  if (static_cast<int64_t>(out_.stored.size()) + size > kMaxStoredBytes) {
    fail("container too large for random access", std::to_string(file_.size()) + " bytes");
  }
  out_.stored.insert(out_.stored.end(), begin, begin + size);
  return static_cast<int64_t>(out_.stored.size()) - size;
}

void IndexBuilder::add_packet(const AVPacket& packet) {
  if (packet.size == 0) return;
  if (static_cast<int64_t>(demuxed_.size()) >= kMaxPackets) {
    fail("video has too many packets", std::to_string(demuxed_.size()));
  }
  size_t extra_size = 0;
  const bool changes =
      av_packet_get_side_data(&packet, AV_PKT_DATA_NEW_EXTRADATA, &extra_size) != nullptr;
  if (changes && !demuxed_.empty()) fail("stream changes its parameters midway", "new extradata");
  demuxed_.push_back({.packet = {.offset = locate(packet),
                                 .size = packet.size,
                                 .is_key = (packet.flags & AV_PKT_FLAG_KEY) != 0},
                      .pts = packet.pts,
                      .is_hidden = (packet.flags & AV_PKT_FLAG_DISCARD) != 0});
}

void IndexBuilder::read_packets() {
  FfmpegOwned<AVPacket> packet(av_packet_alloc());
  if (packet == nullptr) throw std::bad_alloc();
  while (true) {
    const int code = av_read_frame(demuxer_.get(), packet.get());
    if (code == AVERROR_EOF) break;
    check_ffmpeg(code, file_.where(), "video cannot be read");
    if (packet->stream_index == stream_->index) add_packet(*packet);
    av_packet_unref(packet.get());
  }
  if (demuxed_.empty()) fail("video has no pictures", "0 packets");
}

// Decodes the file once; the order in which pictures come out, as packet numbers.
std::vector<int32_t> IndexBuilder::decode_order() {
  FfmpegOwned<AVCodecContext> decoder = open_decoder(*out_.parameters, 0, file_.where());
  FfmpegOwned<AVPacket> packet(av_packet_alloc());
  FfmpegOwned<AVFrame> frame(av_frame_alloc());
  std::vector<int32_t> order;
  const auto collect = [&] {
    while (avcodec_receive_frame(decoder.get(), frame.get()) >= 0) {
      order.push_back(static_cast<int32_t>(frame->pts));
    }
  };
  for (size_t i = 0; i < demuxed_.size(); ++i) {
    const VideoPacket& source = demuxed_[i].packet;
    check_ffmpeg(av_new_packet(packet.get(), source.size), file_.where(), "out of memory");
    std::copy_n(out_.stored.data() + source.offset, source.size, packet->data);
    packet->pts = packet->dts = static_cast<int64_t>(i);
    check_ffmpeg(avcodec_send_packet(decoder.get(), packet.get()), file_.where(),
                 "video cannot be decoded");
    collect();
    av_packet_unref(packet.get());
  }
  avcodec_send_packet(decoder.get(), nullptr);
  collect();
  return order;
}

// For containers without presentation times (AVI).
void IndexBuilder::order_by_decoding() {
  const std::vector<int32_t> order = decode_order();
  std::vector<bool> seen(demuxed_.size(), false);
  for (const int32_t packet : order) {
    if (packet < 0 || packet >= static_cast<int32_t>(seen.size()) || seen[packet]) {
      fail("video has no usable timestamps", "pictures that no packet stands for");
    }
    seen[packet] = true;
  }
  std::vector<int32_t> presentation = order;
  for (int32_t i = 0; i < static_cast<int32_t>(demuxed_.size()); ++i) {
    if (seen[i]) continue;
    demuxed_[i].is_hidden = true;  // makes no picture
    presentation.push_back(i);
  }
  const AVRational rate = stream_->avg_frame_rate;
  const AVRational step = rate.num > 0 ? av_inv_q(rate) : stream_->time_base;
  out_.time_base = step;
  for (size_t i = 0; i < presentation.size(); ++i) {
    demuxed_[presentation[i]].pts = static_cast<int64_t>(i);
  }
  number_frames(presentation);
}

void IndexBuilder::order_by_time() {
  std::vector<int32_t> order(demuxed_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return demuxed_[a].pts < demuxed_[b].pts; });
  number_frames(order);
}

void IndexBuilder::number_frames(const std::vector<int32_t>& presentation_order) {
  out_.presentation_frames.assign(demuxed_.size(), -1);
  for (size_t place = 0; place < presentation_order.size(); ++place) {
    const int32_t number = presentation_order[place];
    Demuxed& entry = demuxed_[number];
    entry.packet.presentation = static_cast<int32_t>(place);
    if (entry.is_hidden) continue;
    out_.presentation_frames[place] = static_cast<int32_t>(out_.frame_packets.size());
    out_.frame_packets.push_back(number);
    out_.frame_pts.push_back(entry.pts);
  }
  for (size_t i = 0; i < demuxed_.size(); ++i) {
    out_.packets.push_back(demuxed_[i].packet);
    if (demuxed_[i].packet.is_key) out_.key_packets.push_back(static_cast<int32_t>(i));
  }
  if (out_.frame_packets.empty()) fail("video shows no pictures", "0 frames");
}

void IndexBuilder::measure_reorder() {
  const auto& packets = out_.packets;
  for (int32_t i = 0; i < static_cast<int32_t>(packets.size()); ++i) {
    int depth = 0;
    for (int32_t j = std::max(0, i - kMaxReorder); j < i; ++j) {
      depth += packets[j].presentation > packets[i].presentation ? 1 : 0;
    }
    out_.reorder_depth = std::max(out_.reorder_depth, depth);
  }
}

void IndexBuilder::fill_info() {
  VideoStreamInfo& info = out_.info;
  const bool is_turned = degrees_ % 180 != 0;
  const AVCodecParameters& parameters = *out_.parameters;
  info.num_frames = static_cast<int64_t>(out_.frame_packets.size());
  info.width = is_turned ? parameters.height : parameters.width;
  info.height = is_turned ? parameters.width : parameters.height;
  info.rotation = degrees_;
  info.codec = avcodec_get_name(parameters.codec_id);
  const double unit = av_q2d(out_.time_base);
  const int64_t first = out_.frame_pts.front(), last = out_.frame_pts.back();
  info.first_timestamp = static_cast<double>(first) * unit;
  const double span = static_cast<double>(last - first) * unit;
  if (span > 0) info.fps = static_cast<double>(info.num_frames - 1) / span;
}

void IndexBuilder::build(int stream) {
  open(!is_mp4_);
  choose_stream(stream);
  if (out_.parameters->width == 0 && is_mp4_) {
    open(true);
    choose_stream(stream);
  }
  if (out_.parameters->width <= 0 || out_.parameters->height <= 0) {
    fail("video does not tell its picture size", "0x0");
  }
  read_packets();
  const bool has_times = std::all_of(demuxed_.begin(), demuxed_.end(), [](const Demuxed& entry) {
    return entry.pts != AV_NOPTS_VALUE;
  });
  if (has_times) {
    order_by_time();
  } else if (!is_mp4_) {
    order_by_decoding();
  } else {
    fail("mp4 gives a picture no time", "no pts");
  }
  measure_reorder();
  fill_info();
}

}  // namespace

VideoIndex::VideoIndex() : impl_(std::make_unique<Impl>()) {}
VideoIndex::~VideoIndex() = default;

std::shared_ptr<const VideoIndex> VideoIndex::build(const std::filesystem::path& path, int stream) {
  capture_ffmpeg_log();
  std::shared_ptr<VideoIndex> index(new VideoIndex());
  IndexBuilder(path, *index->impl_).build(stream);
  return index;
}

const std::filesystem::path& VideoIndex::path() const { return impl_->path; }
const VideoStreamInfo& VideoIndex::info() const { return impl_->info; }
const std::vector<VideoPacket>& VideoIndex::packets() const { return impl_->packets; }
const std::vector<uint8_t>& VideoIndex::stored() const { return impl_->stored; }

double VideoIndex::timestamp(int64_t frame) const {
  return static_cast<double>(impl_->frame_pts.at(static_cast<size_t>(frame))) *
         av_q2d(impl_->time_base);
}

int64_t VideoIndex::size_bytes() const {
  const Impl& self = *impl_;
  return static_cast<int64_t>(sizeof(Impl) + self.packets.capacity() * sizeof(VideoPacket) +
                              (self.frame_packets.capacity() + self.presentation_frames.capacity() +
                               self.key_packets.capacity()) *
                                  sizeof(int32_t) +
                              self.frame_pts.capacity() * sizeof(int64_t) + self.stored.capacity());
}

int32_t VideoIndex::packet_of_frame(int64_t frame) const {
  WAM_CHECK(frame >= 0 && frame < num_frames()) << "frame " << frame << " of " << num_frames();
  return impl_->frame_packets[static_cast<size_t>(frame)];
}

int64_t VideoIndex::frame_of_presentation(int64_t presentation) const {
  const auto& frames = impl_->presentation_frames;
  if (presentation < 0 || presentation >= static_cast<int64_t>(frames.size())) return -1;
  return frames[static_cast<size_t>(presentation)];
}

int32_t VideoIndex::key_before(int32_t packet) const {
  const auto& keys = impl_->key_packets;
  const auto& packets = impl_->packets;
  auto key = std::upper_bound(keys.begin(), keys.end(), packet);
  // Pictures that follow a key picture but are shown before it may refer to what lies before it.
  while (key != keys.begin()) {
    --key;
    if (packets[*key].presentation <= packets[packet].presentation) return *key;
  }
  return 0;
}

}  // namespace wam::data
