#include "wam/data/validate.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/validate_meta.h"
#include "wam/data/validate_pictures.h"
#include "wam/data/validate_table.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

struct EpisodeResult {
  std::vector<Fault> faults;
  ColumnSummaries summaries;
  int64_t num_rows = 0, num_pictures = 0;
};

EpisodeResult check_episode(const MetaView& meta, const Episode& episode,
                            const std::set<std::string>& absent_cameras,
                            const ValidateOptions& options, VideoReader& videos) {
  EpisodeResult result;
  FaultList faults(meta.root);
  const int64_t rows = validate_table(meta, episode, options, faults, result.summaries);
  result.num_rows = std::max<int64_t>(rows, 0);
  for (const Feature& feature : meta.info->features) {
    if (!feature.is_camera() || absent_cameras.contains(feature.key)) continue;
    if (feature.is_image() && rows < 0) continue;
    result.num_pictures += validate_camera(meta, episode, feature, rows < 0 ? episode.length : rows,
                                           options, videos, faults);
  }
  result.faults = faults.take();
  return result;
}

// Shares the episodes out to threads; results lie in the order of the episodes.
std::vector<EpisodeResult> check_episodes(const MetaView& meta,
                                          const std::set<std::string>& absent_cameras,
                                          const ValidateOptions& options) {
  const auto count = static_cast<int64_t>(meta.episodes.size());
  std::vector<EpisodeResult> results(meta.episodes.size());
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  int64_t num_done = 0;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      VideoReader videos(nullptr, 2);
      for (int64_t i = next++; i < count; i = next++) {
        results[static_cast<size_t>(i)] = check_episode(meta, meta.episodes[static_cast<size_t>(i)],
                                                        absent_cameras, options, videos);
        const std::lock_guard lock(mutex);
        ++num_done;
        if (options.progress) options.progress(num_done, count);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  const auto wanted = options.num_threads > 0
                          ? static_cast<int64_t>(options.num_threads)
                          : std::max<int64_t>(1, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 1; i < std::min(wanted, count); ++i) threads.emplace_back(work);
    work();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  return results;
}

// Empty where the meta does not say.
fs::path video_of(const MetaView& meta, const Episode& episode, const std::string& camera) {
  try {
    return meta.layout->video(episode, camera).path;
  } catch (const DataError&) {
    return {};  // reported with the episode
  }
}

bool is_usable_camera(const Feature& feature, FaultList& faults, const fs::path& info_path) {
  try {
    feature.picture_height();
    return true;
  } catch (const DataError& error) {
    faults.add("camera-shape", Severity::kError, error, info_path);
    return false;
  }
}

// Cameras that cannot be looked at episode by episode: reported once.
std::set<std::string> find_absent_cameras(const MetaView& meta, FaultList& faults) {
  std::set<std::string> absent;
  const fs::path info_path = meta.root / "meta" / "info.json";
  for (const Feature& feature : meta.info->features) {
    if (!feature.is_camera()) continue;
    if (!is_usable_camera(feature, faults, info_path)) {
      absent.insert(feature.key);
      continue;
    }
    if (!feature.is_video()) continue;
    const bool has_any =
        !meta.info->video_path.empty() &&
        std::any_of(meta.episodes.begin(), meta.episodes.end(), [&](const Episode& episode) {
          return fs::exists(video_of(meta, episode, feature.key));
        });
    if (has_any) continue;
    absent.insert(feature.key);
    bool is_used = false;
    for (const auto& [key, column] : meta.modality.video) is_used |= column == feature.key;
    faults.add({.code = "camera-absent",
                .severity = is_used ? Severity::kError : Severity::kWarning,
                .file = info_path.string(),
                .what = "camera " + quote(feature.key) + " has no video in any episode",
                .remedy = "Remove the feature from meta/info.json, or restore its videos."});
  }
  return absent;
}

void check_unused(const fs::path& folder, const char* ending, const std::set<fs::path>& expected,
                  FaultList& faults) {
  std::error_code ignored;
  std::vector<fs::path> unused;
  const auto options = fs::directory_options::follow_directory_symlink |
                       fs::directory_options::skip_permission_denied;
  for (auto entry = fs::recursive_directory_iterator(folder, options, ignored);
       entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
    if (entry->path().extension() != ending || expected.contains(entry->path())) continue;
    unused.push_back(entry->path());
  }
  if (unused.empty()) return;
  faults.add({.code = "file-unused",
              .severity = Severity::kNote,
              .file = std::min_element(unused.begin(), unused.end())->string(),
              .count = std::ssize(unused),
              .what = "files that the meta does not list",
              .remedy = "Add their episodes to the meta, or delete them."});
}

void find_unused_files(const MetaView& meta, FaultList& faults) {
  std::set<fs::path> tables, videos;
  const auto expect = [&](const Episode& episode) {
    tables.insert(meta.layout->table(episode).path);
    for (const Feature& feature : meta.info->features) {
      if (!feature.is_video() || meta.info->video_path.empty()) continue;
      videos.insert(video_of(meta, episode, feature.key));
    }
  };
  for (const Episode& episode : meta.episodes) expect(episode);
  for (const Episode& episode : meta.discarded) expect(episode);
  check_unused(meta.root / "data", ".parquet", tables, faults);
  check_unused(meta.root / "videos", ".mp4", videos, faults);
}

void merge(ColumnSummaries& into, const ColumnSummaries& from) {
  for (const auto& [column, dims] : from) {
    std::vector<DimSummary>& target = into[column];
    target.resize(std::max(target.size(), dims.size()));
    for (size_t i = 0; i < dims.size(); ++i) target[i].merge(dims[i]);
  }
}

void append(std::vector<Fault>& faults, std::vector<Fault> more) {
  std::move(more.begin(), more.end(), std::back_inserter(faults));
}

}  // namespace

int64_t ValidationReport::count(Severity severity) const {
  return std::count_if(faults.begin(), faults.end(),
                       [&](const Fault& fault) { return fault.severity == severity; });
}

ValidationReport validate_dataset(const fs::path& root, const ValidateOptions& options) {
  ValidationReport report{.root = root};
  FaultList faults(root);
  const MetaView meta = validate_meta(root, faults);
  if (!meta.info.has_value()) {
    report.faults = faults.take();
    return report;
  }
  report.version = meta.info->version;
  report.num_episodes = std::ssize(meta.episodes);
  const std::set<std::string> absent_cameras = find_absent_cameras(meta, faults);
  find_unused_files(meta, faults);
  report.faults = faults.take();
  ColumnSummaries summaries;
  for (EpisodeResult& result : check_episodes(meta, absent_cameras, options)) {
    append(report.faults, std::move(result.faults));
    merge(summaries, result.summaries);
    report.num_rows += result.num_rows;
    report.num_pictures += result.num_pictures;
  }
  FaultList last(root);
  validate_summaries(meta, summaries, last);
  append(report.faults, last.take());
  return report;
}

}  // namespace wam::data
