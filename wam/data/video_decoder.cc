#include "wam/data/video_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/data/video_index_impl.h"

namespace wam::data {
namespace {

bool same_bytes(const uint8_t* a, int a_size, const uint8_t* b, int b_size) {
  return a_size == b_size && (a_size == 0 || std::memcmp(a, b, static_cast<size_t>(a_size)) == 0);
}

bool same_stream(const AVCodecParameters& a, const AVCodecParameters& b) {
  return a.codec_id == b.codec_id && a.width == b.width && a.height == b.height &&
         a.format == b.format && a.color_range == b.color_range && a.color_space == b.color_space &&
         same_bytes(a.extradata, a.extradata_size, b.extradata, b.extradata_size);
}

// The most pictures a decoder holds back, and a little.
constexpr size_t kMaxStash = 20;
// Bytes of packets that are kept for the next; larger ones come and go.
constexpr int32_t kSmallestPooled = 1 << 14, kLargestPooled = 1 << 22;

}  // namespace

// Frames that are reached in one run of the decoder.
struct VideoDecoder::Segment {
  std::span<const int64_t> frames;
  std::vector<bool> done;
  size_t num_done = 0;
  int32_t last_packet = 0;  // the last packet any of them needs
  bool skip_allowed = true;

  explicit Segment(std::span<const int64_t> wanted) : frames(wanted), done(wanted.size(), false) {}
  bool is_complete() const { return num_done == frames.size(); }
  // Place of a frame in `frames`, or -1.
  int64_t find(int64_t frame) const {
    const auto found = std::lower_bound(frames.begin(), frames.end(), frame);
    return found != frames.end() && *found == frame ? found - frames.begin() : -1;
  }
};

VideoDecoder::VideoDecoder(std::shared_ptr<const VideoIndex> index,
                           std::shared_ptr<const VideoFile> file)
    : packet_(av_packet_alloc()), frame_(av_frame_alloc()) {
  if (packet_ == nullptr || frame_ == nullptr) throw std::bad_alloc();
  decoder_ = open_decoder(*index->impl().parameters, index->impl().reorder_depth, file->where());
  rule_ = make_disposable_rule(*index->impl().parameters);
  attach(std::move(index), std::move(file));
}

bool VideoDecoder::fits(const VideoIndex& index) const {
  return same_stream(*index.impl().parameters, *index_->impl().parameters) &&
         index.impl().reorder_depth <= decoder_->has_b_frames;
}

void VideoDecoder::attach(std::shared_ptr<const VideoIndex> index,
                          std::shared_ptr<const VideoFile> file) {
  if (index_ == index) return;
  index_ = std::move(index);
  file_ = std::move(file);
  sent_run_.assign(index_->packets().size(), 0);
  run_ = 0;
  is_running_ = is_streaming_ = false;
  follow_frame_ = -1;
  stash_.clear();
}

std::string VideoDecoder::place(int64_t frame) const {
  return file_->where() + ", frame " + std::to_string(frame);
}

// Serves what earlier runs left over; the frames that are still to be decoded.
std::vector<int64_t> VideoDecoder::take_from_stash(std::span<const int64_t> frames,
                                                   const Sink& sink) {
  std::vector<int64_t> rest;
  for (const int64_t frame : frames) {
    const auto kept = std::find_if(stash_.begin(), stash_.end(),
                                   [&](const auto& entry) { return entry.first == frame; });
    if (kept == stash_.end()) {
      rest.push_back(frame);
      continue;
    }
    check_picture(*kept->second, frame);
    sink(frame, *kept->second);
    ++counts_.frames_delivered;
  }
  return rest;
}

void VideoDecoder::decode(std::span<const int64_t> wanted, const Sink& sink) {
  WAM_CHECK(std::adjacent_find(wanted.begin(), wanted.end(), std::greater_equal<>()) ==
            wanted.end())
      << "frames must ascend";
  const std::vector<int64_t> rest = take_from_stash(wanted, sink);
  if (rest.empty()) return;
  std::span<const int64_t> frames(rest);
  is_streaming_ = follow_frame_ >= 0 && frames.front() >= follow_frame_ &&
                  index_->key_before(index_->packet_of_frame(frames.front())) <= next_;
  while (!frames.empty()) {
    const size_t length = segment_length(frames);
    Segment segment(frames.first(length));
    frames = frames.subspan(length);
    follow_frame_ = segment.frames.back() + 1;
    decode_segment(segment, sink, is_streaming_ && frames.empty());
    if (!segment.is_complete()) retry_missing(segment, sink);
  }
}

// How many of the frames to reach in one run: up to where a later key frame saves decoding.
size_t VideoDecoder::segment_length(std::span<const int64_t> frames) const {
  int32_t last = index_->packet_of_frame(frames.front());
  size_t length = 1;
  for (; length < frames.size(); ++length) {
    const int32_t packet = index_->packet_of_frame(frames[length]);
    if (index_->key_before(packet) > last + 1) break;
    last = std::max(last, packet);
  }
  return length;
}

// True if going on gives the packet's picture, and no later key frame makes a jump cheaper.
bool VideoDecoder::can_continue(int32_t packet) const {
  if (!is_running_) return false;
  const int32_t key = index_->key_before(packet);
  if (key < start_ || key > next_) return false;
  if (packet >= next_) return true;
  return sent_run_[packet] == run_ && index_->packets()[packet].presentation > last_shown_;
}

void VideoDecoder::restart(int32_t packet) {
  avcodec_flush_buffers(decoder_.get());
  is_running_ = true;
  start_ = next_ = packet;
  last_shown_ = -1;
  stash_.clear();
  ++run_;
  ++counts_.restarts;
}

void VideoDecoder::decode_segment(Segment& segment, const Sink& sink, bool keep_going) {
  int32_t first_key = index_->packet_of_frame(segment.frames.front());
  bool goes_on = true;
  for (const int64_t frame : segment.frames) {
    const int32_t packet = index_->packet_of_frame(frame);
    segment.last_packet = std::max(segment.last_packet, packet);
    first_key = std::min(first_key, index_->key_before(packet));
    goes_on = goes_on && can_continue(packet);
  }
  if (!goes_on && !can_continue(index_->packet_of_frame(segment.frames.front()))) {
    restart(first_key);
  }
  while (next_ <= segment.last_packet) send(next_, segment, sink);
  const auto end = static_cast<int32_t>(index_->packets().size());
  // When frames are read one after the other, packets ahead push the last pictures out and the run
  // lives on; for a single clip draining is cheaper, but it ends the run.
  segment.skip_allowed = false;
  while (keep_going && !segment.is_complete() && next_ < end) send(next_, segment, sink);
  if (!segment.is_complete()) drain(segment, sink);
}

// Streams that announce key pictures from which decoding is not exact at once (gradual refresh):
// starts earlier, at last from the beginning.
void VideoDecoder::retry_missing(Segment& segment, const Sink& sink) {
  for (size_t i = 0; i < segment.frames.size(); ++i) {
    if (segment.done[i]) continue;
    const int32_t packet = index_->packet_of_frame(segment.frames[i]);
    const int32_t key = index_->key_before(packet);
    for (const int32_t start : {key > 0 ? index_->key_before(key - 1) : 0, 0}) {
      if (segment.done[i]) break;
      Segment one(segment.frames.subspan(i, 1));
      one.skip_allowed = false;
      restart(start);
      while (next_ <= packet) send(next_, one, sink);
      if (!one.is_complete()) drain(one, sink);
      segment.done[i] = one.is_complete();
    }
    if (segment.done[i]) continue;
    throw DataError({.where = place(segment.frames[i]),
                     .what = "the decoder yields no picture for this frame",
                     .remedy = "The video is damaged: restore it or leave the episode out."});
  }
}

// A packet of `size` bytes and the padding that decoders read over.
void VideoDecoder::take_packet(int32_t size) {
  av_packet_unref(packet_.get());
  if (packet_bytes_ == nullptr || size > pooled_size_) {
    const auto whole = std::bit_ceil(static_cast<uint32_t>(std::max(size, kSmallestPooled)));
    if (whole > static_cast<uint32_t>(kLargestPooled)) {
      check_ffmpeg(av_new_packet(packet_.get(), size), file_->where(), "out of memory");
      return;
    }
    pooled_size_ = static_cast<int32_t>(whole);
    packet_bytes_.reset(av_buffer_pool_init(whole + AV_INPUT_BUFFER_PADDING_SIZE, nullptr));
    if (packet_bytes_ == nullptr) throw std::bad_alloc();
  }
  packet_->buf = av_buffer_pool_get(packet_bytes_.get());
  if (packet_->buf == nullptr) throw std::bad_alloc();
  packet_->data = packet_->buf->data;
  packet_->size = size;
  std::memset(packet_->data + size, 0, AV_INPUT_BUFFER_PADDING_SIZE);
}

std::span<const uint8_t> VideoDecoder::load(int32_t packet) {
  const VideoPacket& entry = index_->packets()[static_cast<size_t>(packet)];
  take_packet(entry.size);
  const std::span<uint8_t> bytes(packet_->data, static_cast<size_t>(entry.size));
  if (index_->stored().empty()) {
    file_->read(entry.offset, bytes);
  } else {
    std::copy_n(index_->stored().data() + entry.offset, bytes.size(), bytes.data());
  }
  // The decoder hands the number through to the picture, whatever the file's own times are.
  packet_->pts = entry.presentation;
  packet_->dts = packet;
  packet_->flags = entry.is_key ? AV_PKT_FLAG_KEY : 0;
  return bytes;
}

bool VideoDecoder::may_skip(int32_t packet, const Segment& segment,
                            std::span<const uint8_t> bytes) const {
  if (!segment.skip_allowed || packet == start_) return false;
  const int64_t frame =
      index_->frame_of_presentation(index_->packets()[static_cast<size_t>(packet)].presentation);
  if (frame >= 0 && segment.find(frame) >= 0) return false;
  return is_disposable(rule_, bytes);
}

void VideoDecoder::send(int32_t packet, Segment& segment, const Sink& sink) {
  next_ = packet + 1;
  if (may_skip(packet, segment, load(packet))) {
    ++counts_.packets_skipped;
    return;
  }
  sent_run_[static_cast<size_t>(packet)] = run_;
  ++counts_.packets_decoded;
  const int code = avcodec_send_packet(decoder_.get(), packet_.get());
  if (code < 0) {
    is_running_ = false;
    const int32_t presentation = index_->packets()[static_cast<size_t>(packet)].presentation;
    check_ffmpeg(code, place(index_->frame_of_presentation(presentation)),
                 "picture cannot be decoded",
                 "The video is damaged: restore it or leave the episode out.");
  }
  receive(segment, sink);
}

void VideoDecoder::drain(Segment& segment, const Sink& sink) {
  is_running_ = false;
  check_ffmpeg(avcodec_send_packet(decoder_.get(), nullptr), file_->where(),
               "decoder cannot be drained");
  receive(segment, sink);
}

void VideoDecoder::receive(Segment& segment, const Sink& sink) {
  while (true) {
    const int code = avcodec_receive_frame(decoder_.get(), frame_.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
    if (code < 0) is_running_ = false;
    check_ffmpeg(code, file_->where(), "picture cannot be decoded",
                 "The video is damaged: restore it or leave the episode out.");
    last_shown_ = std::max(last_shown_, static_cast<int32_t>(frame_->pts));
    deliver(*frame_, segment, sink);
    av_frame_unref(frame_.get());
  }
}

void VideoDecoder::check_picture(const AVFrame& picture, int64_t frame) {
  const AVCodecParameters& expected = *index_->impl().parameters;
  if (picture.width != expected.width || picture.height != expected.height) {
    is_running_ = false;
    throw DataError(
        {.where = place(frame),
         .what = "picture size changes within the video",
         .got = std::to_string(picture.height) + "x" + std::to_string(picture.width),
         .expected = std::to_string(expected.height) + "x" + std::to_string(expected.width),
         .remedy = "Encode the video anew at one size."});
  }
  if (picture.decode_error_flags == 0 && (picture.flags & AV_FRAME_FLAG_CORRUPT) == 0) return;
  is_running_ = false;
  throw DataError({.where = place(frame),
                   .what = "picture is damaged: the decoder had to guess parts of it",
                   .got = ffmpeg_error(AVERROR_INVALIDDATA),
                   .remedy = "Restore the video or leave the episode out."});
}

void VideoDecoder::deliver(const AVFrame& picture, Segment& segment, const Sink& sink) {
  const int64_t frame = index_->frame_of_presentation(picture.pts);
  if (frame < 0) return;
  const int64_t i = segment.find(frame);
  if (i < 0) {
    if (frame < segment.frames.back() || stash_.size() >= kMaxStash) return;
    stash_.emplace_back(frame, FfmpegOwned<AVFrame>(av_frame_clone(&picture)));
    if (stash_.back().second == nullptr) throw std::bad_alloc();
    return;
  }
  if (segment.done[static_cast<size_t>(i)]) return;
  check_picture(picture, frame);
  sink(frame, picture);
  segment.done[static_cast<size_t>(i)] = true;
  ++segment.num_done;
  ++counts_.frames_delivered;
}

}  // namespace wam::data
