// TensorBoard event files: scalars and pictures by tag and step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wam::train {

using TaggedScalar = std::pair<std::string, double>;  // stored as float32

// Each start of a run writes a file of its own, "events.out.tfevents.<seconds>.<host>.<pid>.<n>";
// TensorBoard reads all of a folder in order of name. Every call hands its bytes to the system
// before it returns (not flushed to disk). Failures are DataError. Not thread-safe.
class TfEventsWriter {
 public:
  // Makes the folder if need be. A resumed run gives its first new step: TensorBoard then forgets
  // what earlier files hold from that step on.
  explicit TfEventsWriter(const std::filesystem::path& folder,
                          std::optional<int64_t> first_new_step = {});
  ~TfEventsWriter();
  TfEventsWriter(const TfEventsWriter&) = delete;
  TfEventsWriter& operator=(const TfEventsWriter&) = delete;

  void add_scalars(int64_t step, std::span<const TaggedScalar> scalars);
  // `png` is a whole PNG file of `height` x `width` pixels with 1, 3 or 4 channels.
  void add_image(int64_t step, const std::string& tag, std::string_view png, int height, int width,
                 int channels);
  const std::filesystem::path& path() const { return path_; }

 private:
  void write_record(const std::string& bytes);
  std::filesystem::path path_;
  int fd_ = -1;
};

struct TfImage {
  std::string tag;
  int height = 0, width = 0;
  std::string png;
};

struct TfEvent {
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  std::string file_version;  // of a file's first event
  bool is_session_start = false;
  std::vector<TaggedScalar> scalars;
  std::vector<TfImage> images;
};

// All events of a file, in order; a last one cut short is left out. DataError for damage.
std::vector<TfEvent> read_tfevents(const std::filesystem::path& path);

}  // namespace wam::train
