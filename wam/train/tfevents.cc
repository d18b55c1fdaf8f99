#include "wam/train/tfevents.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "wam/base/check.h"
#include "wam/base/file_descriptor.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"
#include "wam/train/tfevent.pb.h"
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

proto::Event event_at(int64_t step) {
  proto::Event event;
  event.set_wall_time(now_seconds());
  event.set_step(step);
  return event;
}

bool has_valid_text(const proto::Event& event) {
  const auto& values = event.summary().value();
  return is_valid_utf8(event.file_version()) &&
         std::all_of(values.begin(), values.end(),
                     [](const proto::Summary::Value& value) { return is_valid_utf8(value.tag()); });
}

TfEvent to_event(const proto::Event& from) {
  TfEvent event{
      .wall_time = from.wall_time(), .step = from.step(), .file_version = from.file_version()};
  event.is_session_start = from.session_log().status() == proto::SessionLog::START;
  for (const proto::Summary::Value& value : from.summary().value()) {
    if (value.has_simple_value()) event.scalars.emplace_back(value.tag(), value.simple_value());
    if (!value.has_image()) continue;
    const proto::Image& image = value.image();
    event.images.push_back(
        {value.tag(), image.height(), image.width(), image.encoded_image_string()});
  }
  return event;
}

}  // namespace

TfEventsWriter::TfEventsWriter(const fs::path& folder, std::optional<int64_t> first_new_step) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_io_error(folder, "cannot make the folder", error.value());
  fd_ = create_file(folder, path_);
  proto::Event event = event_at(0);
  event.set_file_version(kFileVersion);
  write_record(event.SerializeAsString());
  if (!first_new_step) return;
  event = event_at(*first_new_step);
  event.mutable_session_log()->set_status(proto::SessionLog::START);
  write_record(event.SerializeAsString());
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
  proto::Event event = event_at(step);
  for (const auto& [tag, value] : scalars) {
    proto::Summary::Value* item = event.mutable_summary()->add_value();
    item->set_tag(tag);
    item->set_simple_value(static_cast<float>(value));
  }
  write_record(event.SerializeAsString());
}

void TfEventsWriter::add_image(int64_t step, const std::string& tag, std::string_view png,
                               int height, int width, int channels) {
  WAM_CHECK(height > 0 && width > 0 && (channels == 1 || channels == 3 || channels == 4));
  proto::Event event = event_at(step);
  proto::Summary::Value* item = event.mutable_summary()->add_value();
  item->set_tag(tag);
  proto::Image* image = item->mutable_image();
  image->set_height(height);
  image->set_width(width);
  image->set_colorspace(channels);
  image->set_encoded_image_string(png.data(), png.size());
  write_record(event.SerializeAsString());
}

std::vector<TfEvent> read_tfevents(const fs::path& path) {
  const MappedFile file(path);
  std::vector<TfEvent> events;
  for (std::string_view record : split_tfrecords(file.text(), path.string())) {
    proto::Event event;
    if (record.size() > INT32_MAX ||
        !event.ParseFromArray(record.data(), static_cast<int>(record.size())) ||
        !has_valid_text(event)) {
      throw DataError(
          {.where = path.string(),
           .what = "record " + std::to_string(events.size()) + " is no TensorBoard event",
           .remedy = "The file is damaged or of another kind."});
    }
    events.push_back(to_event(event));
  }
  return events;
}

}  // namespace wam::train
