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
  DecodeCounts retired;  // counts of decoders that are gone

  VideoDecoder& decoder_for(const std::shared_ptr<const VideoIndex>& index);
  void decode(VideoDecoder& decoder, std::span<const int64_t> frames, std::span<uint8_t> rgb);
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

void VideoReader::Impl::decode(VideoDecoder& decoder, std::span<const int64_t> frames,
                               std::span<uint8_t> rgb) {
  const size_t picture_bytes = rgb.size() / frames.size();
  std::vector<size_t> order(frames.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return frames[a] < frames[b]; });
  std::vector<int64_t> distinct;
  for (const size_t i : order) {
    if (distinct.empty() || distinct.back() != frames[i]) distinct.push_back(frames[i]);
  }
  const int rotation = decoder.index().info().rotation;
  std::vector<size_t> first_place;  // where each distinct frame goes first
  for (const size_t i : order) {
    if (first_place.empty() || frames[first_place.back()] != frames[i]) first_place.push_back(i);
  }
  decoder.decode(distinct, [&](int64_t frame, const AVFrame& picture) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), frame) - distinct.begin();
    converter.convert(
        picture, rotation,
        rgb.subspan(first_place[static_cast<size_t>(at)] * picture_bytes, picture_bytes));
  });
  for (size_t k = 1; k < order.size(); ++k) {
    if (frames[order[k]] != frames[order[k - 1]]) continue;
    std::memcpy(rgb.data() + order[k] * picture_bytes, rgb.data() + order[k - 1] * picture_bytes,
                picture_bytes);
  }
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

void VideoReader::read_into(const std::filesystem::path& path, std::span<const int64_t> frames,
                            std::span<uint8_t> rgb) {
  const std::shared_ptr<const VideoIndex> index = this->index(path);
  const VideoStreamInfo& info = index->info();
  WAM_CHECK(rgb.size() == frames.size() * static_cast<size_t>(info.height) * info.width * 3)
      << rgb.size();
  for (const int64_t frame : frames) {
    if (frame >= 0 && frame < info.num_frames) continue;
    throw DataError({.where = path.string(),
                     .what = "video has fewer frames than asked for",
                     .got = "frame " + std::to_string(frame),
                     .expected = "0 to " + std::to_string(info.num_frames - 1),
                     .remedy = "The video does not belong to the table, or was cut short."});
  }
  if (!frames.empty()) impl_->decode(impl_->decoder_for(index), frames, rgb);
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
