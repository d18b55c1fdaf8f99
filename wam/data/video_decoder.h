// Private to the video_* files: decodes frames by number. One packet reader and one decoder, used
// again for file after file as long as the streams have equal parameters. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wam/data/video_codec.h"
#include "wam/data/video_ffmpeg.h"
#include "wam/data/video_index.h"
#include "wam/data/video_io.h"

namespace wam::data {

// What was done so far; for benchmarks and tests.
struct DecodeCounts {
  int64_t frames_delivered = 0;
  int64_t packets_decoded = 0;
  int64_t packets_skipped = 0;  // left out although they lay between key frame and target
  int64_t restarts = 0;
};

class VideoDecoder {
 public:
  // Receives frame number and picture, which is valid during the call only.
  using Sink = std::function<void(int64_t frame, const AVFrame& picture)>;

  VideoDecoder(std::shared_ptr<const VideoIndex> index, std::shared_ptr<const VideoFile> file);
  // True if attach() to `index` is possible.
  bool fits(const VideoIndex& index) const;
  void attach(std::shared_ptr<const VideoIndex> index, std::shared_ptr<const VideoFile> file);
  const VideoIndex& index() const { return *index_; }
  const DecodeCounts& counts() const { return counts_; }

  // Delivers each of `frames` (ascending, distinct, in range) once, in any order. Throws DataError
  // for damaged pictures and frames that the stream does not yield.
  void decode(std::span<const int64_t> frames, const Sink& sink);

 private:
  struct Segment;
  void decode_segment(Segment& segment, const Sink& sink, bool keep_going);
  void retry_missing(Segment& segment, const Sink& sink);
  size_t segment_length(std::span<const int64_t> frames) const;
  bool can_continue(int32_t packet) const;
  void restart(int32_t packet);
  void send(int32_t packet, Segment& segment, const Sink& sink);
  void drain(Segment& segment, const Sink& sink);
  void receive(Segment& segment, const Sink& sink);
  void deliver(const AVFrame& picture, Segment& segment, const Sink& sink);
  void check_picture(const AVFrame& picture, int64_t frame);
  std::vector<int64_t> take_from_stash(std::span<const int64_t> frames, const Sink& sink);
  bool may_skip(int32_t packet, const Segment& segment, std::span<const uint8_t> bytes) const;
  void take_packet(int32_t size);
  std::span<const uint8_t> load(int32_t packet);
  std::string place(int64_t frame) const;

  std::shared_ptr<const VideoIndex> index_;
  std::shared_ptr<const VideoFile> file_;
  FfmpegOwned<AVCodecContext> decoder_;
  FfmpegOwned<AVPacket> packet_;
  FfmpegOwned<AVBufferPool> packet_bytes_;  // of packets up to pooled_size_, used again and again
  int32_t pooled_size_ = 0;
  FfmpegOwned<AVFrame> frame_;
  DisposableRule rule_;
  // The run: packets start_ .. next_-1 went through the decoder, some left out.
  bool is_running_ = false;
  int32_t start_ = 0, next_ = 0;
  int32_t last_shown_ = -1;  // presentation of the last picture that came out
  // Pictures of this run that came out beyond what was asked for: likely asked for next.
  std::vector<std::pair<int64_t, FfmpegOwned<AVFrame>>> stash_;
  std::vector<uint32_t> sent_run_;  // packet -> number of the run that sent it
  uint32_t run_ = 0;
  bool is_streaming_ = false;  // the last requests followed one another
  int64_t follow_frame_ = -1;  // the frame after the last request
  DecodeCounts counts_;
};

}  // namespace wam::data
