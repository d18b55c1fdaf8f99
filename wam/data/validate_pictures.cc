#include "wam/data/validate_pictures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/hash.h"
#include "wam/base/quote.h"
#include "wam/data/image_codec.h"
#include "wam/data/parquet_reader.h"
#include "wam/data/path_template.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

// Pictures decoded at once: bounds memory, and keeps one decoder running over the whole video.
constexpr int64_t kBatch = 16;
// A picture with no channel above this is black: limited-range black is 0 to 2 after conversion.
constexpr uint8_t kBlackLevel = 16;
// Seconds of identical pictures that count as frozen.
constexpr double kFrozenSeconds = 1;

// Watches the pictures of one camera go by.
class PictureWatch {
 public:
  explicit PictureWatch(double fps)
      : frozen_limit_(std::max<int64_t>(10, std::llround(fps * kFrozenSeconds))) {}

  void see(int64_t row, std::span<const uint8_t> rgb) {
    ++num_seen_;
    if (*std::max_element(rgb.begin(), rgb.end()) < kBlackLevel) {
      if (first_black_ < 0) first_black_ = row;
      ++num_black_;
    }
    const uint64_t hash = hash64(std::as_bytes(rgb));
    const bool repeats = num_seen_ > 1 && hash == last_hash_;
    last_hash_ = hash;
    run_ = repeats ? run_ + 1 : 1;
    if (run_ > longest_run_) longest_run_ = run_, longest_start_ = row - run_ + 1;
  }

  void report(Fault fault, FaultList& faults) const {
    fault.severity = Severity::kWarning;
    if (num_black_ > 0) {
      fault.code = "picture-black";
      fault.row = first_black_;
      fault.count = num_black_;
      fault.what = "pictures are black";
      fault.remedy = "Check the camera; leave the episode out if it was off.";
      faults.add(fault);
    }
    if (longest_run_ < frozen_limit_) return;
    fault.code = "picture-frozen";
    fault.row = longest_start_;
    fault.count = longest_run_;
    fault.what = "pictures do not change for " + std::to_string(longest_run_) + " frames";
    fault.remedy = "Check whether the camera hung; harmless if the scene stood still.";
    faults.add(fault);
  }

 private:
  int64_t frozen_limit_;
  int64_t num_seen_ = 0, num_black_ = 0, first_black_ = -1;
  int64_t run_ = 0, longest_run_ = 0, longest_start_ = -1;
  uint64_t last_hash_ = 0;
};

class CameraCheck {
 public:
  CameraCheck(const MetaView& meta, const Episode& episode, const Feature& camera, int64_t num_rows,
              const ValidateOptions& options, FaultList& faults)
      : meta_(meta),
        episode_(episode),
        camera_(camera),
        num_rows_(num_rows),
        options_(options),
        faults_(faults),
        watch_(meta.info->fps) {}

  int64_t check_video(VideoReader& videos);
  int64_t check_images();

 private:
  void add(const std::string& code, Severity severity, const std::string& what,
           const std::string& remedy) {
    Fault fault = place();
    fault.code = code;
    fault.severity = severity;
    fault.what = what;
    fault.remedy = remedy;
    faults_.add(std::move(fault));
  }
  Fault place() const { return {.file = path_.string(), .episode = episode_.index}; }
  void check_stream(const VideoStreamInfo& info);
  void check_frames(const VideoStreamInfo& info);
  void decode_video(VideoReader& videos, const VideoStreamInfo& info);
  void decode_one_by_one(VideoReader& videos, std::span<const int64_t> frames);
  void check_image(const ParquetImageColumn& column, int64_t row);
  void add_image_fault(const std::string& code, const DataError& error, int64_t row);

  const MetaView& meta_;
  const Episode& episode_;
  const Feature& camera_;
  int64_t num_rows_;
  const ValidateOptions& options_;
  FaultList& faults_;
  PictureWatch watch_;
  FrameSource source_;
  fs::path path_;
  int64_t num_decoded_ = 0, num_damaged_ = 0;
};

int64_t CameraCheck::check_video(VideoReader& videos) {
  try {
    source_ = meta_.layout->video(episode_, camera_.key);
    path_ = source_.path;
    if (!fs::exists(path_)) {
      add("video-missing", Severity::kError, "video is missing",
          "Restore the file, or remove the episode from the meta.");
      return 0;
    }
    const VideoStreamInfo info = videos.index(path_)->info();
    check_stream(info);
    if (options_.decode_pictures) decode_video(videos, info);
  } catch (const DataError& error) {
    faults_.add("video-unreadable", Severity::kError, error, path_, episode_.index);
  }
  return num_decoded_;
}

// A video of one episode against its table; of several against the meta, where frames too many are
// said once.
void CameraCheck::check_frames(const VideoStreamInfo& info) {
  const int64_t expected = source_.is_shared ? source_.total : num_rows_;
  const bool is_short = info.num_frames < expected;
  if (info.num_frames == expected || (!is_short && source_.first > 0)) return;
  if (source_.is_shared && is_short && info.num_frames >= source_.first + episode_.length) return;
  add("video-frames", is_short ? Severity::kError : Severity::kWarning,
      "video has " + std::to_string(info.num_frames) + " frames, " +
          (source_.is_shared ? "its episodes " : "the table ") + std::to_string(expected) + " rows",
      is_short ? "Restore the video or leave the episode out."
               : "Frames past the last row are not used.");
}

void CameraCheck::check_stream(const VideoStreamInfo& info) {
  check_frames(info);
  const auto size = [](int64_t height, int64_t width) {
    return std::to_string(height) + "x" + std::to_string(width);
  };
  if (info.height != camera_.picture_height() || info.width != camera_.picture_width()) {
    add("video-size", Severity::kError,
        "pictures are " + size(info.height, info.width) + ", meta/info.json says " +
            size(camera_.picture_height(), camera_.picture_width()),
        "Correct meta/info.json or re-encode the video.");
  }
  if (info.fps > 0 && std::abs(info.fps - meta_.info->fps) > 0.01 * meta_.info->fps) {
    add("video-fps", Severity::kWarning,
        "video runs at " + std::to_string(info.fps) + " frames/s, meta/info.json says " +
            std::to_string(meta_.info->fps),
        "Frames are taken by row; check that rows and frames belong together.");
  }
  if (!camera_.codec.empty() && camera_.codec != info.codec) {
    add("video-codec", Severity::kWarning,
        "video is " + info.codec + ", meta/info.json says " + camera_.codec,
        "Correct meta/info.json.");
  }
}

void CameraCheck::decode_video(VideoReader& videos, const VideoStreamInfo& info) {
  const int64_t end = source_.is_shared ? std::min(info.num_frames, source_.first + episode_.length)
                                        : info.num_frames;
  for (int64_t first = source_.first; first < end; first += kBatch) {
    std::vector<int64_t> frames(static_cast<size_t>(std::min(kBatch, end - first)));
    std::iota(frames.begin(), frames.end(), first);
    try {
      const HostTensor pictures = videos.read(path_, frames);
      const size_t size = pictures.as<uint8_t>().size() / frames.size();
      for (size_t i = 0; i < frames.size(); ++i) {
        watch_.see(frames[i] - source_.first, pictures.as<uint8_t>().subspan(i * size, size));
      }
      num_decoded_ += std::ssize(frames);
    } catch (const DataError&) {
      decode_one_by_one(videos, frames);
    }
  }
  watch_.report(place(), faults_);
}

// Finds which pictures of a batch are damaged; the first is reported, with their number.
void CameraCheck::decode_one_by_one(VideoReader& videos, std::span<const int64_t> frames) {
  for (const int64_t frame : frames) {
    try {
      watch_.see(frame - source_.first, videos.read(path_, {&frame, 1}).as<uint8_t>());
      ++num_decoded_;
    } catch (const DataError& error) {
      if (num_damaged_++ > 0) continue;
      faults_.add("picture-damaged", Severity::kError, error, path_, episode_.index,
                  frame - source_.first);
    }
  }
}

int64_t CameraCheck::check_images() {
  source_ = meta_.layout->table(episode_);
  path_ = source_.path;
  try {
    const ParquetReader reader(path_);
    if (reader.find_column(camera_.key) == nullptr) return 0;  // reported with the table
    // In parts: a whole episode's pictures may be large.
    const int64_t rows = source_.is_shared ? num_rows_ : reader.num_rows();
    for (int64_t first = 0; first < rows; first += kBatch) {
      const int64_t count = std::min(kBatch, rows - first);
      const ParquetImageColumn column =
          reader.read_images(camera_.key, source_.first + first, count);
      for (int64_t i = 0; i < count; ++i) {
        try {
          if (options_.decode_pictures) check_image(column, i);
        } catch (const DataError& error) {
          add_image_fault("picture-damaged", error, first + i);
        }
      }
    }
  } catch (const DataError& error) {
    faults_.add("column-unreadable", Severity::kError, error, path_, episode_.index);
  }
  watch_.report(place(), faults_);
  return num_decoded_;
}

void CameraCheck::add_image_fault(const std::string& code, const DataError& error, int64_t row) {
  if (num_damaged_++ > 0) return;
  faults_.add(code, Severity::kError, error, path_, episode_.index, row);
}

void CameraCheck::check_image(const ParquetImageColumn& column, int64_t row) {
  const std::string where = path_.string() + ": column " + quote(camera_.key);
  std::vector<std::byte> from_file;
  std::span<const std::byte> bytes = column.bytes(row);
  if (!column.has_bytes(row)) {
    const fs::path file(column.path(row));
    if (file.empty())
      throw DataError({.where = where,
                       .what = "picture has neither bytes nor path",
                       .remedy = "Record it anew, or drop the episode."});
    require_inside(file, where);
    const MappedFile mapped(meta_.root / file);
    from_file.assign(mapped.bytes().begin(), mapped.bytes().end());
    bytes = from_file;
  }
  const ImageSize expected{camera_.picture_height(), camera_.picture_width()};
  const ImageSize size = read_image_size(bytes, where);
  if (size != expected) {
    throw DataError(
        {.where = where,
         .what = "picture of another size than meta/info.json says",
         .got = std::to_string(size.height) + "x" + std::to_string(size.width),
         .expected = std::to_string(expected.height) + "x" + std::to_string(expected.width),
         .remedy = "Correct meta/info.json or the picture."});
  }
  watch_.see(num_decoded_++, decode_image(bytes, where).as<uint8_t>());
}

}  // namespace

int64_t validate_camera(const MetaView& meta, const Episode& episode, const Feature& camera,
                        int64_t num_rows, const ValidateOptions& options, VideoReader& videos,
                        FaultList& faults) {
  CameraCheck check(meta, episode, camera, num_rows, options, faults);
  return camera.is_video() ? check.check_video(videos) : check.check_images();
}

}  // namespace wam::data
