#include "wam/data/video_reader.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/data/video_convert.h"
#include "wam/data/video_decoder.h"

namespace wam::data {

struct VideoIndexCache::Impl {
  using Key = std::pair<std::string, int>;
  struct Entry {
    Key key;
    std::shared_ptr<const VideoIndex> index;
  };
  std::mutex mutex;
  std::list<Entry> entries;  // last used first
  std::map<Key, std::list<Entry>::iterator> by_key;
  int64_t max_bytes = 0, bytes = 0;

  std::shared_ptr<const VideoIndex> find(const Key& key) {
    const std::lock_guard lock(mutex);
    const auto found = by_key.find(key);
    if (found == by_key.end()) return nullptr;
    entries.splice(entries.begin(), entries, found->second);
    return entries.front().index;
  }
  void insert(const Key& key, const std::shared_ptr<const VideoIndex>& index) {
    const std::lock_guard lock(mutex);
    if (by_key.contains(key)) return;  // another thread was faster
    entries.push_front({key, index});
    by_key[key] = entries.begin();
    bytes += index->size_bytes();
    while (bytes > max_bytes && entries.size() > 1) {
      bytes -= entries.back().index->size_bytes();
      by_key.erase(entries.back().key);
      entries.pop_back();
    }
  }
};

VideoIndexCache::VideoIndexCache(int64_t max_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->max_bytes = max_bytes;
}
VideoIndexCache::~VideoIndexCache() = default;

std::shared_ptr<const VideoIndex> VideoIndexCache::get(const std::filesystem::path& path,
                                                       int stream) {
  const Impl::Key key(path.string(), stream);
  std::shared_ptr<const VideoIndex> index = impl_->find(key);
  if (index != nullptr) return index;
  index = VideoIndex::build(path, stream);
  impl_->insert(key, index);
  return index;
}

int64_t VideoIndexCache::size_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->bytes;
}

struct VideoReader::Impl {
  std::shared_ptr<VideoIndexCache> indexes;
  int max_decoders = 8;
  int stream = -1;
  std::list<VideoDecoder> decoders;  // last used first
  PictureConverter converter;
  std::vector<uint8_t> picture;  // the one being handed out
  DecodeCounts retired;          // counts of decoders that are gone

  VideoDecoder& decoder_for(const std::shared_ptr<const VideoIndex>& index);
  void decode(VideoDecoder& decoder, std::span<const int64_t> frames, std::span<uint8_t> rgb);
  void decode_each(VideoDecoder& decoder, std::span<const int64_t> frames, const Sink& sink);
};

// The decoder already on the file, else a new one, else the longest unused.
VideoDecoder& VideoReader::Impl::decoder_for(const std::shared_ptr<const VideoIndex>& index) {
  for (auto decoder = decoders.begin(); decoder != decoders.end(); ++decoder) {
    if (&decoder->index() != index.get()) continue;
    decoders.splice(decoders.begin(), decoders, decoder);
    return decoders.front();
  }
  auto file = std::make_shared<const VideoFile>(index->path());
  if (static_cast<int>(decoders.size()) < max_decoders) {
    decoders.emplace_front(index, std::move(file));
    return decoders.front();
  }
  const auto fitting = std::find_if(decoders.rbegin(), decoders.rend(),
                                    [&](const auto& decoder) { return decoder.fits(*index); });
  if (fitting != decoders.rend()) {
    decoders.splice(decoders.begin(), decoders, std::prev(fitting.base()));
    decoders.front().attach(index, std::move(file));
    return decoders.front();
  }
  const DecodeCounts& last = decoders.back().counts();
  retired.frames_delivered += last.frames_delivered;
  retired.packets_decoded += last.packets_decoded;
  retired.packets_skipped += last.packets_skipped;
  decoders.pop_back();
  decoders.emplace_front(index, std::move(file));
  return decoders.front();
}

namespace {

// Places in `frames` by frame, and the frames without repeats.
struct FrameOrder {
  explicit FrameOrder(std::span<const int64_t> wanted) : frames(wanted), places(wanted.size()) {
    std::iota(places.begin(), places.end(), size_t{0});
    std::stable_sort(places.begin(), places.end(),
                     [&](size_t a, size_t b) { return frames[a] < frames[b]; });
    for (const size_t i : places) {
      if (distinct.empty() || distinct.back() != frames[i]) distinct.push_back(frames[i]);
    }
  }
  // Where a frame goes, once for every repeat.
  std::span<const size_t> places_of(int64_t frame) const {
    const auto less = [&](size_t place, int64_t value) { return frames[place] < value; };
    const auto begin = std::lower_bound(places.begin(), places.end(), frame, less);
    auto end = begin;
    while (end != places.end() && frames[*end] == frame) ++end;
    return {begin, end};
  }
  std::span<const int64_t> frames;
  std::vector<size_t> places;
  std::vector<int64_t> distinct;
};

}  // namespace

void VideoReader::Impl::decode(VideoDecoder& decoder, std::span<const int64_t> frames,
                               std::span<uint8_t> rgb) {
  const size_t picture_bytes = rgb.size() / frames.size();
  const FrameOrder order(frames);
  const int rotation = decoder.index().info().rotation;
  decoder.decode(order.distinct, [&](int64_t frame, const AVFrame& picture) {
    const std::span<const size_t> places = order.places_of(frame);
    const auto first = rgb.subspan(places[0] * picture_bytes, picture_bytes);
    converter.convert(picture, rotation, first);
    for (const size_t place : places.subspan(1)) {
      std::memcpy(rgb.data() + place * picture_bytes, first.data(), picture_bytes);
    }
  });
}

void VideoReader::Impl::decode_each(VideoDecoder& decoder, std::span<const int64_t> frames,
                                    const Sink& sink) {
  const FrameOrder order(frames);
  const VideoStreamInfo& info = decoder.index().info();
  picture.resize(static_cast<size_t>(info.height) * static_cast<size_t>(info.width) * 3);
  decoder.decode(order.distinct, [&](int64_t frame, const AVFrame& decoded) {
    converter.convert(decoded, info.rotation, picture);
    for (const size_t place : order.places_of(frame)) sink(place, picture);
  });
}

VideoReader::VideoReader(std::shared_ptr<VideoIndexCache> indexes, int max_decoders, int stream)
    : impl_(std::make_unique<Impl>()) {
  WAM_CHECK(max_decoders >= 1) << max_decoders;
  capture_ffmpeg_log();
  impl_->indexes = indexes != nullptr ? std::move(indexes) : std::make_shared<VideoIndexCache>();
  impl_->max_decoders = max_decoders;
  impl_->stream = stream;
}
VideoReader::~VideoReader() = default;

std::shared_ptr<const VideoIndex> VideoReader::index(const std::filesystem::path& path) {
  return impl_->indexes->get(path, impl_->stream);
}

HostTensor VideoReader::read(const std::filesystem::path& path, std::span<const int64_t> frames) {
  const VideoStreamInfo& info = index(path)->info();
  HostTensor pictures(DType::kU8,
                      {static_cast<int64_t>(frames.size()), info.height, info.width, 3});
  read_into(path, frames, pictures.as<uint8_t>());
  return pictures;
}

namespace {

void check_frames(const VideoIndex& index, std::span<const int64_t> frames) {
  const int64_t num_frames = index.num_frames();
  for (const int64_t frame : frames) {
    if (frame >= 0 && frame < num_frames) continue;
    throw DataError({.where = index.path().string(),
                     .what = "video has fewer frames than asked for",
                     .got = "frame " + std::to_string(frame),
                     .expected = "0 to " + std::to_string(num_frames - 1),
                     .remedy = "The video does not belong to the table, or was cut short."});
  }
}

}  // namespace

void VideoReader::read_into(const std::filesystem::path& path, std::span<const int64_t> frames,
                            std::span<uint8_t> rgb) {
  const std::shared_ptr<const VideoIndex> index = this->index(path);
  const VideoStreamInfo& info = index->info();
  WAM_CHECK(rgb.size() == frames.size() * static_cast<size_t>(info.height) * info.width * 3)
      << rgb.size();
  check_frames(*index, frames);
  if (!frames.empty()) impl_->decode(impl_->decoder_for(index), frames, rgb);
}

void VideoReader::read_each(const std::filesystem::path& path, std::span<const int64_t> frames,
                            const Sink& sink) {
  const std::shared_ptr<const VideoIndex> index = this->index(path);
  check_frames(*index, frames);
  if (!frames.empty()) impl_->decode_each(impl_->decoder_for(index), frames, sink);
}

VideoReadCounts VideoReader::counts() const {
  VideoReadCounts counts{impl_->retired.frames_delivered, impl_->retired.packets_decoded,
                         impl_->retired.packets_skipped};
  for (const VideoDecoder& decoder : impl_->decoders) {
    counts.frames_delivered += decoder.counts().frames_delivered;
    counts.packets_decoded += decoder.counts().packets_decoded;
    counts.packets_skipped += decoder.counts().packets_skipped;
  }
  return counts;
}

}  // namespace wam::data
