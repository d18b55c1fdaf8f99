#include "wam/data/video_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/data/coded_error.h"

namespace wam::data {
namespace {

constexpr int kInputBufferBytes = 1 << 15;

int64_t big_endian(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (const uint8_t byte : bytes) value = (value << 8) | byte;
  return static_cast<int64_t>(value);
}

bool has_type(std::span<const uint8_t> header, const char* type) {
  return std::memcmp(header.data() + 4, type, 4) == 0;
}

bool is_mp4(std::span<const uint8_t> header) {
  return has_type(header, "ftyp") || has_type(header, "moov") || has_type(header, "mdat") ||
         has_type(header, "free") || has_type(header, "wide") || has_type(header, "skip");
}

[[noreturn]] void throw_cut(const VideoFile& file, const std::string& got) {
  throw CodedError("video-cut", {.where = file.where(),
                                 .what = "video is cut short or was never finished",
                                 .got = got,
                                 .expected = "a whole mp4 with its index (moov)",
                                 .remedy = "Restore the file, or leave the episode out."});
}

// One top-level box: where its contents begin and where it ends.
struct Box {
  ByteRange contents;
  bool is_media = false, is_index = false;
};

Box read_box(const VideoFile& file, int64_t offset) {
  std::array<uint8_t, 16> header{};
  file.read_some(offset, header);
  int64_t size = big_endian(std::span(header).first(4));
  int64_t header_size = 8;
  if (size == 1) {
    size = big_endian(std::span(header).subspan(8, 8));
    header_size = 16;
  }
  if (size == 0) size = file.size() - offset;  // to the end of the file
  if (size < header_size || size > file.size() - offset) {
    throw_cut(file, std::to_string(file.size()) + " bytes, and a box of " + std::to_string(size) +
                        " at byte " + std::to_string(offset));
  }
  return {.contents = {offset + header_size, offset + size},
          .is_media = has_type(header, "mdat"),
          .is_index = has_type(header, "moov")};
}

}  // namespace

VideoFile::VideoFile(const std::filesystem::path& path)
    : where_(path.string()), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_.get() < 0) throw_io_error(path, "cannot open the video", errno);
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw_io_error(path, "cannot read the video", errno);
  if (!S_ISREG(status.st_mode)) {
    throw DataError({.where = where_,
                     .what = "not a regular file",
                     .expected = "a video file",
                     .remedy = "Check what the template video_path of meta/info.json names."});
  }
  size_ = status.st_size;
  if (size_ > 0) return;
  throw CodedError("video-empty", {.where = where_,
                                   .what = "video is empty",
                                   .got = "0 bytes",
                                   .remedy = "Restore the file, or leave the episode out."});
}

size_t VideoFile::read_some(int64_t offset, std::span<uint8_t> target) const {
  size_t done = 0;
  while (done < target.size()) {
    const ssize_t count = ::pread(fd_.get(), target.data() + done, target.size() - done,
                                  offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error(where_, "cannot read the video", errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

void VideoFile::read(int64_t offset, std::span<uint8_t> target) const {
  if (read_some(offset, target) == target.size()) return;
  throw DataError(
      {.where = where_,
       .what = "video ends early",
       .got = std::to_string(size_) + " bytes",
       .expected = std::to_string(target.size()) + " more at byte " + std::to_string(offset),
       .remedy = "Restore the file, or leave the episode out."});
}

std::vector<ByteRange> find_media_data(const VideoFile& file) {
  std::array<uint8_t, 8> header{};
  if (file.read_some(0, header) < header.size() || !is_mp4(header)) return {};
  std::vector<ByteRange> media;
  bool has_index = false;
  int64_t offset = 0;
  // A tail shorter than a box header is padding.
  while (file.size() - offset >= 8) {
    const Box box = read_box(file, offset);
    if (box.is_media) media.push_back(box.contents);
    has_index = has_index || box.is_index;
    offset = box.contents.end;
  }
  if (!has_index) throw_cut(file, "no moov box");
  return media;
}

DemuxInput::DemuxInput(const VideoFile& file, std::vector<ByteRange> holes)
    : file_(file), holes_(std::move(holes)) {
  auto* buffer = static_cast<uint8_t*>(av_malloc(kInputBufferBytes));
  if (buffer == nullptr) throw std::bad_alloc();
  io_.reset(avio_alloc_context(buffer, kInputBufferBytes, 0, this, on_read, nullptr, on_seek));
  if (io_ != nullptr) return;
  av_free(buffer);
  throw std::bad_alloc();
}

int DemuxInput::on_read(void* self, uint8_t* target, int count) {
  auto& input = *static_cast<DemuxInput*>(self);
  const int64_t left = input.file_.size() - input.position_;
  if (left <= 0) return AVERROR_EOF;
  int64_t length = std::min<int64_t>(count, left);
  for (const ByteRange& hole : input.holes_) {
    if (input.position_ >= hole.end) continue;
    if (input.position_ < hole.begin) {
      length = std::min(length, hole.begin - input.position_);
      break;
    }
    length = std::min(length, hole.end - input.position_);
    std::memset(target, 0, static_cast<size_t>(length));
    input.position_ += length;
    return static_cast<int>(length);
  }
  try {
    const size_t done =
        input.file_.read_some(input.position_, {target, static_cast<size_t>(length)});
    if (done == 0) return AVERROR_EOF;
    input.position_ += static_cast<int64_t>(done);
    return static_cast<int>(done);
  } catch (const Error&) {
    return AVERROR(EIO);
  }
}

int64_t DemuxInput::on_seek(void* self, int64_t offset, int whence) {
  auto& input = *static_cast<DemuxInput*>(self);
  const int origin = whence & ~AVSEEK_FORCE;
  if (origin == AVSEEK_SIZE) return input.file_.size();
  if (origin == SEEK_CUR) offset += input.position_;
  if (origin == SEEK_END) offset += input.file_.size();
  if (offset < 0) return AVERROR(EINVAL);
  return input.position_ = offset;
}

}  // namespace wam::data
