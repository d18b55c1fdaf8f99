// The meta of LeRobot v3.0, read leniently: meta/episodes and meta/tasks.parquet.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "wam/base/quote.h"
#include "wam/data/lerobot_meta.h"
#include "wam/data/lerobot_v3.h"
#include "wam/data/validate_meta.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

// What LeRobot itself allows between a frame's time and the time asked for.
constexpr double kLerobotTolerance = 1e-4;

// Times that the meta states of one episode in one camera's videos.
struct StatedTimes {
  int64_t episode = 0;
  double from = 0, to = 0;
};
using TimesByCamera = std::map<std::string, std::vector<StatedTimes>>;

class EpisodeRows {
 public:
  EpisodeRows(const MetaView& meta, FaultList& faults)
      : meta_(meta), faults_(faults), cameras_(v3_cameras(*meta.info)) {}

  // Adds the file's rows to `builder`; a file that cannot be read is one fault.
  void read(const fs::path& file, V3MetaBuilder& builder);
  const TimesByCamera& times() const { return times_; }
  int64_t num_rows() const { return num_rows_; }

 private:
  bool is_sound(const V3Row& row, const fs::path& file, int64_t number);
  void check_place(const V3Row& row, const fs::path& file);

  const MetaView& meta_;
  FaultList& faults_;
  std::vector<std::string> cameras_;
  TimesByCamera times_;
  int64_t num_rows_ = 0, num_misplaced_ = 0;
};

bool EpisodeRows::is_sound(const V3Row& row, const fs::path& file, int64_t number) {
  try {
    check_episode(row.episode, file.string() + ": row " + std::to_string(number));
    return true;
  } catch (const DataError& error) {
    faults_.add("episode-line-invalid", Severity::kError, error, file, row.episode.index, number);
    return false;
  }
}

// A row says itself in which file of meta/episodes it lies; one that errs was copied or moved.
void EpisodeRows::check_place(const V3Row& row, const fs::path& file) {
  if (row.meta_chunk < 0 || row.meta_file < 0) return;
  const std::string said =
      fmt::format("chunk-{:03d}/file-{:03d}.parquet", row.meta_chunk, row.meta_file);
  const std::string lies = file.parent_path().filename().string() + "/" + file.filename().string();
  if (said == lies || num_misplaced_++ > 0) return;
  faults_.add({.code = "meta-place",
               .severity = Severity::kWarning,
               .file = file.string(),
               .episode = row.episode.index,
               .what = "the row says that it lies in " + said,
               .remedy =
                   "Rows were moved by hand: convert the dataset again before appending to it "
                   "with LeRobot."});
}

void EpisodeRows::read(const fs::path& file, V3MetaBuilder& builder) {
  try {
    for_each_v3_row(file, *meta_.info, [&](V3Row& row, int64_t number) {
      if (!is_sound(row, file, number)) return;
      check_place(row, file);
      for (size_t c = 0; c < cameras_.size(); ++c) {
        const V3Video& video = row.videos[c];
        if (video.chunk_index < 0) continue;
        times_[cameras_[c]].push_back(
            {row.episode.index, video.from_timestamp, video.to_timestamp});
      }
      ++num_rows_;
      builder.add(std::move(row));
    });
  } catch (const DataError& error) {
    faults_.add("episode-line-invalid", Severity::kError, error, file);
  }
}

// Off by less than half a frame, which is harmless here: frames are found by counting.
class DriftCheck {
 public:
  DriftCheck(const MetaView& meta, const std::string& camera) : meta_(meta), camera_(camera) {}

  void see(const StatedTimes& stated, const Episode& episode) {
    const double fps = meta_.info->fps;
    const FrameSource source = meta_.layout->video(episode, camera_);
    const double start = static_cast<double>(source.first) / fps;
    const double length = static_cast<double>(episode.length) / fps;
    const double drift = std::abs(stated.from - start);
    if (drift * fps < 0.5) count(drift, episode.index, num_drifting_, first_drifting_, worst_);
    const double off = stated.to > 0 ? std::abs(stated.to - stated.from - length) : 0;
    count(off, episode.index, num_ends_, first_end_, worst_end_);
  }

  void report(FaultList& faults) const {
    const std::string file = (meta_.root / "meta/episodes").string();
    const auto add = [&](const char* code, int64_t number, int64_t first, const std::string& what,
                         const char* remedy) {
      if (number == 0) return;
      faults.add({.code = code,
                  .severity = Severity::kWarning,
                  .file = file,
                  .episode = first,
                  .count = number,
                  .what = "camera " + quote(camera_) + ": " + what,
                  .remedy = remedy});
    };
    add("video-drift", num_drifting_, first_drifting_,
        fmt::format("from_timestamp is up to {:.6f} s from where the lengths put the episode",
                    worst_),
        "Frames are found by counting; LeRobot, which seeks by time, may refuse or take a "
        "neighbour.");
    add("video-end", num_ends_, first_end_,
        fmt::format("to_timestamp is up to {:.6f} s from from_timestamp + length / fps",
                    worst_end_),
        "Harmless: not used. Convert the dataset again to correct it.");
  }

 private:
  static void count(double off, int64_t episode, int64_t& number, int64_t& first, double& worst) {
    if (!(off > kLerobotTolerance)) return;
    if (number++ == 0) first = episode;
    worst = std::max(worst, off);
  }

  const MetaView& meta_;
  const std::string& camera_;
  int64_t num_drifting_ = 0, first_drifting_ = -1, num_ends_ = 0, first_end_ = -1;
  double worst_ = 0, worst_end_ = 0;
};

void check_drift(const MetaView& meta, const TimesByCamera& times, FaultList& faults) {
  std::map<int64_t, const Episode*> by_index;
  for (const Episode& episode : meta.episodes) by_index[episode.index] = &episode;
  for (const auto& [camera, list] : times) {
    DriftCheck check(meta, camera);
    for (const StatedTimes& stated : list) {
      const auto found = by_index.find(stated.episode);
      if (found != by_index.end()) check.see(stated, *found->second);
    }
    check.report(faults);
  }
}

void read_tasks_v3(MetaView& meta, FaultList& faults) {
  const fs::path path = meta.root / meta.tasks_file();
  if (!fs::exists(path)) {
    faults.add({.code = "meta-missing",
                .severity = Severity::kWarning,
                .file = path.string(),
                .what = "tasks.parquet is missing: there are no instructions by task_index",
                .remedy = "Restore the file, or name columns with instructions in the config."});
    return;
  }
  try {
    meta.tasks = read_v3_tasks(meta.root);
  } catch (const DataError& error) {
    faults.add("task-line-invalid", Severity::kError, error, path);
  }
}

}  // namespace

void validate_meta_v3(MetaView& meta, FaultList& faults) {
  V3MetaBuilder builder(meta.root, *meta.info);
  EpisodeRows rows(meta, faults);
  const fs::path folder = meta.root / meta.episodes_file();
  try {
    for (const fs::path& file : v3_episode_files(meta.root)) rows.read(file, builder);
  } catch (const DataError& error) {
    faults.add("meta-missing", Severity::kError, error, folder);
  }
  LerobotMeta read = builder.finish([&](const V3Fault& fault) {
    faults.add(fault.code, Severity::kError, DataError(fault.info), folder, fault.episode);
  });
  meta.episodes = std::move(read.episodes);
  meta.layout = std::move(read.layout);
  check_drift(meta, rows.times(), faults);
  read_tasks_v3(meta, faults);
}

}  // namespace wam::data
