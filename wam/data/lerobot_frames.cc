#include "wam/data/lerobot_frames.h"

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"
#include "wam/data/episode_table.h"
#include "wam/data/image_codec.h"
#include "wam/data/parquet_reader.h"
#include "wam/data/path_template.h"

namespace wam::data {
namespace {

// Encoded pictures kept by one reader: a few episodes of a libero-like dataset.
constexpr int64_t kMaxImageCacheBytes = int64_t{64} << 20;

std::string size_text(int64_t height, int64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

// Image columns of the episodes used last.
class ImageColumnCache {
 public:
  const ParquetImageColumn& get(const FrameSource& source, const std::string& camera,
                                const Episode& episode);

 private:
  struct Entry {
    std::string path, camera;
    int64_t first = 0;
    ParquetImageColumn column;
  };
  std::list<Entry> entries_;  // last used first
  int64_t bytes_ = 0;
};

const ParquetImageColumn& ImageColumnCache::get(const FrameSource& source,
                                                const std::string& camera, const Episode& episode) {
  const std::string path = source.path.string();
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.first == source.first && entry.camera == camera && entry.path == path;
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().column;
  }
  const ParquetReader reader(source.path);
  check_table_rows(reader, source, episode);
  entries_.push_front(
      {path, camera, source.first, reader.read_images(camera, source.first, episode.length)});
  bytes_ += entries_.front().column.size_bytes();
  while (bytes_ > kMaxImageCacheBytes && entries_.size() > 1) {
    bytes_ -= entries_.back().column.size_bytes();
    entries_.pop_back();
  }
  return entries_.front().column;
}

class LerobotFrameReader : public FrameReader {
 public:
  LerobotFrameReader(const FrameRules& rules, std::shared_ptr<VideoIndexCache> indexes)
      : rules_(rules), videos_(std::move(indexes)) {}

  HostTensor read(const Episode& episode, const std::string& camera,
                  std::span<const int64_t> rows) override;
  void read_each(const Episode& episode, const std::string& camera, std::span<const int64_t> rows,
                 const Sink& sink) override;

 private:
  const Feature& require_camera(const std::string& camera) const;
  void check_rows(const Episode& episode, std::span<const int64_t> rows) const;
  std::vector<int64_t> frames_of(const FrameSource& source, const Feature& feature,
                                 std::span<const int64_t> rows);
  // target(i) is where the picture of rows[i] goes; done(i) follows it.
  template <typename Target, typename Done>
  void read_images(const Episode& episode, const Feature& feature, std::span<const int64_t> rows,
                   Target&& target, Done&& done);
  void decode_row(const ParquetImageColumn& column, int64_t row, const std::string& where,
                  ImageSize size, std::span<uint8_t> rgb) const;

  FrameRules rules_;
  VideoReader videos_;
  ImageColumnCache images_;
  std::vector<uint8_t> picture_;  // the one being handed out
};

const Feature& LerobotFrameReader::require_camera(const std::string& camera) const {
  const auto feature = std::find_if(rules_.features->begin(), rules_.features->end(),
                                    [&](const Feature& f) { return f.key == camera; });
  if (feature == rules_.features->end() || !feature->is_camera()) {
    throw DataError({.where = rules_.root.string(),
                     .what = "dataset has no such camera",
                     .got = quote(camera),
                     .expected = "a video or image feature of meta/info.json",
                     .remedy = "Name another camera in the config."});
  }
  if (feature->is_depth_map) {
    throw DataError({.where = rules_.root.string() + ": feature " + quote(camera),
                     .what = "camera is a depth map",
                     .expected = "colour pictures",
                     .remedy = "Name another camera in the config."});
  }
  return *feature;
}

void LerobotFrameReader::check_rows(const Episode& episode, std::span<const int64_t> rows) const {
  for (const int64_t row : rows) {
    WAM_CHECK(row >= 0 && row < episode.length)
        << "row " << row << " of episode " << episode.index << " with " << episode.length;
  }
}

HostTensor LerobotFrameReader::read(const Episode& episode, const std::string& camera,
                                    std::span<const int64_t> rows) {
  const Feature& feature = require_camera(camera);
  check_rows(episode, rows);
  HostTensor pictures(DType::kU8, {static_cast<int64_t>(rows.size()), feature.picture_height(),
                                   feature.picture_width(), 3});
  const auto rgb = pictures.as<uint8_t>();
  if (feature.is_video()) {
    const FrameSource source = rules_.layout->video(episode, camera);
    videos_.read_into(source.path, frames_of(source, feature, rows), rgb);
    return pictures;
  }
  const size_t size = rows.empty() ? 0 : rgb.size() / rows.size();
  read_images(
      episode, feature, rows, [&](size_t i) { return rgb.subspan(i * size, size); }, [](size_t) {});
  return pictures;
}

void LerobotFrameReader::read_each(const Episode& episode, const std::string& camera,
                                   std::span<const int64_t> rows, const Sink& sink) {
  const Feature& feature = require_camera(camera);
  check_rows(episode, rows);
  if (feature.is_video()) {
    const FrameSource source = rules_.layout->video(episode, camera);
    return videos_.read_each(source.path, frames_of(source, feature, rows), sink);
  }
  picture_.resize(static_cast<size_t>(feature.picture_height() * feature.picture_width() * 3));
  read_images(
      episode, feature, rows, [&](size_t) { return std::span(picture_); },
      [&](size_t i) { sink(i, picture_); });
}

// Frames of a video that is what the meta says.
std::vector<int64_t> LerobotFrameReader::frames_of(const FrameSource& source,
                                                   const Feature& feature,
                                                   std::span<const int64_t> rows) {
  const VideoStreamInfo& info = videos_.index(source.path)->info();
  if (info.num_frames < source.total) {
    throw DataError({.where = source.path.string(),
                     .what = source.is_shared ? "video has fewer frames than its episodes have rows"
                                              : "video has fewer frames than the episode has rows",
                     .got = std::to_string(info.num_frames),
                     .expected = std::to_string(source.total),
                     .remedy = "Restore the video or leave the episode out."});
  }
  if (info.height != feature.picture_height() || info.width != feature.picture_width()) {
    throw DataError({.where = source.path.string(),
                     .what = "video has another picture size than meta/info.json says",
                     .got = size_text(info.height, info.width),
                     .expected = size_text(feature.picture_height(), feature.picture_width()),
                     .remedy = "Correct meta/info.json or re-encode the video."});
  }
  std::vector<int64_t> frames(rows.begin(), rows.end());
  for (int64_t& frame : frames) frame += source.first;
  return frames;
}

void LerobotFrameReader::decode_row(const ParquetImageColumn& column, int64_t row,
                                    const std::string& where, ImageSize size,
                                    std::span<uint8_t> rgb) const {
  if (column.has_bytes(row)) return decode_image_into(column.bytes(row), where, size, rgb);
  const std::filesystem::path path(column.path(row));
  if (path.empty()) {
    throw DataError({.where = where,
                     .what = "picture has neither bytes nor a path",
                     .remedy = "Restore the file or leave the episode out."});
  }
  require_inside(path, where);
  const MappedFile file(rules_.root / path);
  decode_image_into(file.bytes(), file.path().string(), size, rgb);
}

template <typename Target, typename Done>
void LerobotFrameReader::read_images(const Episode& episode, const Feature& feature,
                                     std::span<const int64_t> rows, Target&& target, Done&& done) {
  const FrameSource source = rules_.layout->table(episode);
  const ParquetImageColumn& column = images_.get(source, feature.key, episode);
  const ImageSize size{feature.picture_height(), feature.picture_width()};
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string where = source.path.string() + ": column " + quote(feature.key) + ", row " +
                              std::to_string(source.first + rows[i]);
    decode_row(column, rows[i], where, size, target(i));
    done(i);
  }
}

}  // namespace

std::unique_ptr<FrameReader> make_lerobot_frame_reader(const FrameRules& rules,
                                                       std::shared_ptr<VideoIndexCache> indexes) {
  return std::make_unique<LerobotFrameReader>(rules, std::move(indexes));
}

}  // namespace wam::data
