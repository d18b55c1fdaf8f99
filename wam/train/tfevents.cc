#include "wam/train/tfevents.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "wam/base/check.h"
#include "wam/base/file_descriptor.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"
#include "wam/train/proto_wire.h"
#include "wam/train/tfrecord.h"

namespace wam::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileVersion = "brain.Event:2";

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "host";
  return name.data();
}

// Opens a file that did not exist; the number tells starts within one second apart.
int create_file(const fs::path& folder, fs::path& path) {
  const std::string start = "events.out.tfevents." +
                            std::to_string(static_cast<int64_t>(now_seconds())) + "." +
                            host_name() + "." + std::to_string(::getpid()) + ".";
  for (int n = 0;; ++n) {
    path = folder / (start + std::to_string(n));
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) return fd;
    if (errno != EEXIST) throw_io_error(path, "cannot write", errno);
  }
}

// The fields of TensorBoard's messages that are used here, with their public numbers
// (tensorboard/compat/proto/event.proto and summary.proto).
namespace field {
// Event
constexpr uint32_t kWallTime = 1;     // double
constexpr uint32_t kStep = 2;         // int64
constexpr uint32_t kFileVersion = 3;  // string
constexpr uint32_t kSummary = 5;      // Summary
constexpr uint32_t kSessionLog = 7;   // SessionLog
// Summary and Summary.Value
constexpr uint32_t kValue = 1;        // repeated Value
constexpr uint32_t kTag = 1;          // string
constexpr uint32_t kSimpleValue = 2;  // float
constexpr uint32_t kImage = 4;        // Image
// Summary.Image
constexpr uint32_t kHeight = 1, kWidth = 2;
constexpr uint32_t kColorspace = 3;  // 1 grey, 3 RGB, 4 RGBA
constexpr uint32_t kEncodedImage = 4;
// SessionLog
constexpr uint32_t kStatus = 1;
}  // namespace field
constexpr int64_t kSessionStart = 1;

ProtoWriter event_at(int64_t step) {
  return ProtoWriter().real64(field::kWallTime, now_seconds()).integer(field::kStep, step);
}

// Calls `take` for every field; false if the message is damaged or `take` refuses one.
template <typename Take>
bool for_each_field(std::string_view message, Take take) {
  ProtoReader reader(message);
  while (const std::optional<ProtoField> next = reader.next()) {
    if (!take(*next)) return false;
  }
  return reader.is_whole();
}

// A field that has the number and type asked for; one of another type is skipped as unknown, as
// readers of the format do.
bool is(const ProtoField& f, uint32_t number, ProtoType type) {
  return f.number == number && f.type == type;
}

bool take_text(std::string_view bytes, std::string& text) {
  text = bytes;
  return is_valid_utf8(bytes);
}

bool read_image(std::string_view message, TfImage& image) {
  return for_each_field(message, [&](const ProtoField& f) {
    if (is(f, field::kHeight, ProtoType::kVarint)) image.height = static_cast<int>(f.bits);
    if (is(f, field::kWidth, ProtoType::kVarint)) image.width = static_cast<int>(f.bits);
    if (is(f, field::kEncodedImage, ProtoType::kBytes)) image.png = f.bytes;
    return true;
  });
}

bool read_value(std::string_view message, TfEvent& event) {
  std::string tag;
  std::optional<float> scalar;
  std::optional<TfImage> image;
  const bool is_good = for_each_field(message, [&](const ProtoField& f) {
    if (is(f, field::kTag, ProtoType::kBytes)) return take_text(f.bytes, tag);
    if (is(f, field::kSimpleValue, ProtoType::kFixed32)) scalar = f.real32();
    if (is(f, field::kImage, ProtoType::kBytes)) return read_image(f.bytes, image.emplace());
    return true;
  });
  if (scalar) event.scalars.emplace_back(tag, *scalar);
  if (image) {
    image->tag = tag;
    event.images.push_back(std::move(*image));
  }
  return is_good;
}

bool read_summary(std::string_view message, TfEvent& event) {
  return for_each_field(message, [&](const ProtoField& f) {
    return !is(f, field::kValue, ProtoType::kBytes) || read_value(f.bytes, event);
  });
}

bool read_session_log(std::string_view message, TfEvent& event) {
  return for_each_field(message, [&](const ProtoField& f) {
    event.is_session_start |= is(f, field::kStatus, ProtoType::kVarint) && f.bits == kSessionStart;
    return true;
  });
}

bool read_event(std::string_view message, TfEvent& event) {
  return for_each_field(message, [&](const ProtoField& f) {
    if (is(f, field::kWallTime, ProtoType::kFixed64)) event.wall_time = f.real64();
    if (is(f, field::kStep, ProtoType::kVarint)) event.step = static_cast<int64_t>(f.bits);
    if (is(f, field::kFileVersion, ProtoType::kBytes))
      return take_text(f.bytes, event.file_version);
    if (is(f, field::kSummary, ProtoType::kBytes)) return read_summary(f.bytes, event);
    if (is(f, field::kSessionLog, ProtoType::kBytes)) return read_session_log(f.bytes, event);
    return true;
  });
}

}  // namespace

TfEventsWriter::TfEventsWriter(const fs::path& folder, std::optional<int64_t> first_new_step) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_io_error(folder, "cannot make the folder", error.value());
  fd_ = create_file(folder, path_);
  write_record(event_at(0).bytes(field::kFileVersion, kFileVersion).message());
  if (!first_new_step) return;
  const ProtoWriter start = ProtoWriter().integer(field::kStatus, kSessionStart);
  write_record(event_at(*first_new_step).bytes(field::kSessionLog, start.message()).message());
}

TfEventsWriter::~TfEventsWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void TfEventsWriter::write_record(const std::string& bytes) {
  const std::string record = frame_tfrecord(bytes);
  const int error = write_all(fd_, record.data(), record.size());
  if (error != 0) throw_io_error(path_, "cannot write", error);
}

void TfEventsWriter::add_scalars(int64_t step, std::span<const TaggedScalar> scalars) {
  ProtoWriter summary;
  for (const auto& [tag, value] : scalars) {
    const auto narrow = static_cast<float>(value);
    summary.bytes(
        field::kValue,
        ProtoWriter().bytes(field::kTag, tag).real32(field::kSimpleValue, narrow).message());
  }
  write_record(event_at(step).bytes(field::kSummary, summary.message()).message());
}

void TfEventsWriter::add_image(int64_t step, const std::string& tag, std::string_view png,
                               int height, int width, int channels) {
  WAM_CHECK(height > 0 && width > 0 && (channels == 1 || channels == 3 || channels == 4));
  ProtoWriter image;
  image.integer(field::kHeight, height).integer(field::kWidth, width);
  image.integer(field::kColorspace, channels).bytes(field::kEncodedImage, png);
  const ProtoWriter value =
      ProtoWriter().bytes(field::kTag, tag).bytes(field::kImage, image.message());
  const ProtoWriter summary = ProtoWriter().bytes(field::kValue, value.message());
  write_record(event_at(step).bytes(field::kSummary, summary.message()).message());
}

std::vector<TfEvent> read_tfevents(const fs::path& path) {
  const MappedFile file(path);
  std::vector<TfEvent> events;
  for (std::string_view record : split_tfrecords(file.text(), path.string())) {
    TfEvent event;
    if (!read_event(record, event)) {
      throw DataError(
          {.where = path.string(),
           .what = "record " + std::to_string(events.size()) + " is no TensorBoard event",
           .remedy = "The file is damaged or of another kind."});
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace wam::train
