#include "wam/data/lerobot_v2.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/data/episode_table.h"
#include "wam/data/lerobot_frames.h"
#include "wam/data/lerobot_meta.h"
#include "wam/data/modality.h"
#include "wam/data/stats_file.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

class LerobotV2 : public Dataset, public FrameLocator {
 public:
  LerobotV2(const fs::path& root, LerobotInfo info);

  const fs::path& root() const override { return root_; }
  std::string version() const override { return info_.version; }
  std::string robot_type() const override { return info_.robot_type; }
  double fps() const override { return info_.fps; }
  const std::vector<Feature>& features() const override { return info_.features; }
  const Feature* find_feature(const std::string& key) const override {
    return info_.find_feature(key);
  }
  const std::vector<Episode>& episodes() const override { return episodes_; }
  const Modality& modality() const override { return modality_; }
  const std::map<int64_t, std::string>& tasks() const override { return tasks_; }
  const std::vector<int64_t>& discarded_episodes() const override {
    return info_.discarded_episodes;
  }
  const StatsByColumn& stats() const override;
  const StatsByColumn& relative_stats() const override;
  EpisodeTable read_table(const Episode& episode) const override;
  EpisodeTable read_columns(const Episode& episode,
                            std::span<const std::string> columns) const override;
  std::unique_ptr<FrameReader> make_frame_reader() const override;

  FrameSource video(const Episode& episode, const std::string& camera) const override {
    return {video_path(root_, info_, episode.index, camera), 0, true};
  }
  FrameSource table(const Episode& episode) const override {
    return {table_path(root_, info_, episode.index), 0, true};
  }

 private:
  void leave_out_discarded();

  fs::path root_;
  LerobotInfo info_;
  std::vector<Episode> episodes_;
  std::map<int64_t, std::string> tasks_;
  Modality modality_;
  std::shared_ptr<VideoIndexCache> indexes_ = std::make_shared<VideoIndexCache>();
  // Read when first asked for: per-episode statistics may be gigabytes.
  mutable std::once_flag stats_once_, relative_stats_once_;
  mutable StatsByColumn stats_, relative_stats_;
};

LerobotV2::LerobotV2(const fs::path& root, LerobotInfo info)
    : root_(root),
      info_(std::move(info)),
      episodes_(read_episodes(root)),
      tasks_(read_tasks(root)),
      modality_(read_modality(root, info_.features)) {
  leave_out_discarded();
}

void LerobotV2::leave_out_discarded() {
  if (info_.discarded_episodes.empty()) return;
  std::vector<int64_t> discarded = info_.discarded_episodes;
  std::sort(discarded.begin(), discarded.end());
  const size_t before = episodes_.size();
  std::erase_if(episodes_, [&](const Episode& episode) {
    return std::binary_search(discarded.begin(), discarded.end(), episode.index);
  });
  log_info(root_.string() + ": " + std::to_string(before - episodes_.size()) +
           " episodes left out, as info.json's discarded_episode_indices says");
  if (!episodes_.empty()) return;
  throw DataError({.where = root_.string(),
                   .what = "all episodes are listed in discarded_episode_indices",
                   .remedy = "Correct meta/info.json."});
}

const StatsByColumn& LerobotV2::stats() const {
  std::call_once(stats_once_, [this] { stats_ = read_dataset_stats(root_); });
  return stats_;
}

const StatsByColumn& LerobotV2::relative_stats() const {
  std::call_once(relative_stats_once_, [this] { relative_stats_ = read_relative_stats(root_); });
  return relative_stats_;
}

EpisodeTable LerobotV2::read_table(const Episode& episode) const {
  return read_columns(episode, {});
}

EpisodeTable LerobotV2::read_columns(const Episode& episode,
                                     std::span<const std::string> columns) const {
  const TableRules rules{.features = info_.features, .modality = &modality_};
  return read_episode_table(table_path(root_, info_, episode.index), episode, rules, columns);
}

std::unique_ptr<FrameReader> LerobotV2::make_frame_reader() const {
  return make_lerobot_frame_reader(*this, indexes_);
}

PathFields fields_of(const LerobotInfo& info, int64_t episode_index) {
  return {.episode_index = episode_index, .episode_chunk = episode_index / info.chunks_size};
}

}  // namespace

fs::path table_path(const fs::path& root, const LerobotInfo& info, int64_t episode_index) {
  return root / info.data_path.expand(fields_of(info, episode_index));
}

fs::path video_path(const fs::path& root, const LerobotInfo& info, int64_t episode_index,
                    const std::string& camera) {
  if (info.video_path.empty()) {
    throw DataError({.where = (root / "meta/info.json").string(),
                     .what = "there is no video_path although a camera is a video",
                     .got = camera,
                     .remedy = "Add the template to meta/info.json."});
  }
  PathFields fields = fields_of(info, episode_index);
  fields.video_key = camera;
  return root / info.video_path.expand(fields);
}

std::unique_ptr<Dataset> open_lerobot_v2(const fs::path& root, LerobotInfo info) {
  return std::make_unique<LerobotV2>(root, std::move(info));
}

}  // namespace wam::data
