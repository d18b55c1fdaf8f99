#include "wam/data/lerobot_dataset.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "wam/base/error.h"
#include "wam/base/log.h"
#include "wam/data/episode_table.h"
#include "wam/data/lerobot_frames.h"
#include "wam/data/modality.h"
#include "wam/data/stats_file.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

class LerobotDataset : public Dataset {
 public:
  LerobotDataset(const fs::path& root, LerobotInfo info, LerobotMeta meta);

  const fs::path& root() const override { return root_; }
  std::string version() const override { return info_.version; }
  std::string robot_type() const override { return info_.robot_type; }
  double fps() const override { return info_.fps; }
  const std::vector<Feature>& features() const override { return info_.features; }
  const Feature* find_feature(const std::string& key) const override {
    return info_.find_feature(key);
  }
  const std::vector<Episode>& episodes() const override { return meta_.episodes; }
  const Modality& modality() const override { return modality_; }
  const std::map<int64_t, std::string>& tasks() const override { return meta_.tasks; }
  const std::vector<int64_t>& discarded_episodes() const override {
    return info_.discarded_episodes;
  }
  const StatsByColumn& stats() const override;
  const StatsByColumn& relative_stats() const override;
  EpisodeTable read_table(const Episode& episode) const override;
  EpisodeTable read_columns(const Episode& episode,
                            std::span<const std::string> columns) const override;
  std::unique_ptr<FrameReader> make_frame_reader() const override;

 private:
  void leave_out_discarded();

  fs::path root_;
  LerobotInfo info_;
  LerobotMeta meta_;
  Modality modality_;
  std::shared_ptr<VideoIndexCache> indexes_ = std::make_shared<VideoIndexCache>();
  // Read when first asked for: per-episode statistics may be gigabytes.
  mutable std::once_flag stats_once_, relative_stats_once_;
  mutable StatsByColumn stats_, relative_stats_;
};

LerobotDataset::LerobotDataset(const fs::path& root, LerobotInfo info, LerobotMeta meta)
    : root_(root),
      info_(std::move(info)),
      meta_(std::move(meta)),
      modality_(read_modality(root, info_.features)) {
  leave_out_discarded();
}

void LerobotDataset::leave_out_discarded() {
  if (info_.discarded_episodes.empty()) return;
  std::vector<int64_t> discarded = info_.discarded_episodes;
  std::sort(discarded.begin(), discarded.end());
  const size_t before = meta_.episodes.size();
  std::erase_if(meta_.episodes, [&](const Episode& episode) {
    return std::binary_search(discarded.begin(), discarded.end(), episode.index);
  });
  log_info(root_.string() + ": " + std::to_string(before - meta_.episodes.size()) +
           " episodes left out, as info.json's discarded_episode_indices says");
  if (!meta_.episodes.empty()) return;
  throw DataError({.where = root_.string(),
                   .what = "all episodes are listed in discarded_episode_indices",
                   .remedy = "Correct meta/info.json."});
}

const StatsByColumn& LerobotDataset::stats() const {
  std::call_once(stats_once_, [this] { stats_ = read_dataset_stats(root_); });
  return stats_;
}

const StatsByColumn& LerobotDataset::relative_stats() const {
  std::call_once(relative_stats_once_, [this] { relative_stats_ = read_relative_stats(root_); });
  return relative_stats_;
}

EpisodeTable LerobotDataset::read_table(const Episode& episode) const {
  return read_columns(episode, {});
}

EpisodeTable LerobotDataset::read_columns(const Episode& episode,
                                          std::span<const std::string> columns) const {
  const TableRules rules{.features = info_.features, .modality = &modality_};
  return read_episode_table(meta_.layout->table(episode), episode, rules, columns);
}

std::unique_ptr<FrameReader> LerobotDataset::make_frame_reader() const {
  return make_lerobot_frame_reader({root_, &info_.features, meta_.layout.get()}, indexes_);
}

}  // namespace

std::unique_ptr<Dataset> make_lerobot_dataset(const fs::path& root, LerobotInfo info,
                                              LerobotMeta meta) {
  return std::make_unique<LerobotDataset>(root, std::move(info), std::move(meta));
}

}  // namespace wam::data
