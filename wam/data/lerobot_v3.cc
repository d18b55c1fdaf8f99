#include "wam/data/lerobot_v3.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "wam/base/check.h"
#include "wam/base/quote.h"
#include "wam/data/coded_error.h"
#include "wam/data/lerobot_meta.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

// A file of rows or frames that episodes share.
struct SharedFile {
  int64_t chunk = 0, file = 0;
  int64_t total = 0;     // rows or frames of all its episodes
  int64_t episodes = 0;  // how many
};

// Numbers files by (chunk, file).
class FileTable {
 public:
  int32_t id(int64_t chunk, int64_t file) {
    if (!files_.empty() && files_.back().chunk == chunk && files_.back().file == file) {
      return static_cast<int32_t>(files_.size()) - 1;  // rows mostly come file by file
    }
    const auto [entry, is_new] =
        ids_.try_emplace({chunk, file}, static_cast<int32_t>(files_.size()));
    if (is_new) files_.push_back({chunk, file, 0, 0});
    return entry->second;
  }
  SharedFile& operator[](int32_t id) { return files_[static_cast<size_t>(id)]; }
  const SharedFile& operator[](int32_t id) const { return files_[static_cast<size_t>(id)]; }
  size_t size() const { return files_.size(); }

 private:
  std::vector<SharedFile> files_;
  std::map<std::pair<int64_t, int64_t>, int32_t> ids_;
};

// Places of all episodes in the data files, or in one camera's videos; by position of the episode.
struct Track {
  std::string camera;  // empty: the data
  FileTable files;
  std::vector<int32_t> file;  // -1: the meta does not say
  std::vector<int64_t> first;
  std::vector<double> order;  // as stated: dataset_from_index or from_timestamp; dropped at last
};

template <typename T>
void permute(std::vector<T>& values, const std::vector<int64_t>& order) {
  std::vector<T> result;
  result.reserve(order.size());
  for (const int64_t i : order) result.push_back(std::move(values[static_cast<size_t>(i)]));
  values = std::move(result);
}

class LayoutV3 : public EpisodeLayout {
 public:
  LayoutV3(const fs::path& root, const LerobotInfo& info, std::vector<int64_t> indexes,
           std::vector<Track> tracks)
      : root_(root), info_(info), indexes_(std::move(indexes)), tracks_(std::move(tracks)) {}

  FrameSource table(const Episode& episode) const override {
    return source(tracks_[0], episode, info_.data_path);
  }
  FrameSource video(const Episode& episode, const std::string& camera) const override {
    require_video_path(info_, root_, camera);
    for (const Track& track : tracks_) {
      if (track.camera == camera) return source(track, episode, info_.video_path);
    }
    WAM_CHECK(false) << camera << " is no video feature";
    return {};
  }

 private:
  FrameSource source(const Track& track, const Episode& episode, const PathTemplate& path) const {
    const auto found = std::lower_bound(indexes_.begin(), indexes_.end(), episode.index);
    WAM_CHECK(found != indexes_.end() && *found == episode.index) << "episode " << episode.index;
    const auto position = static_cast<size_t>(found - indexes_.begin());
    if (track.file[position] < 0) {
      throw DataError({.where = (root_ / "meta" / "episodes").string(),
                       .what = "the meta does not say where a camera's videos are",
                       .got = quote(track.camera),
                       .expected = "columns videos/" + track.camera +
                                   "/chunk_index, file_index "
                                   "and from_timestamp",
                       .remedy = "Restore meta/episodes, or name another camera."});
    }
    const SharedFile& file = track.files[track.file[position]];
    PathFields fields{.chunk_index = file.chunk, .file_index = file.file};
    fields.video_key = track.camera;
    return {.path = root_ / path.expand(fields),
            .first = track.first[position],
            .total = file.total,
            .is_shared = true};
  }

  fs::path root_;
  LerobotInfo info_;
  std::vector<int64_t> indexes_;  // of all episodes, ascending
  std::vector<Track> tracks_;     // [0]: data, then the cameras
};

}  // namespace

struct V3MetaBuilder::Impl {
  fs::path root;
  LerobotInfo info;
  std::vector<Episode> episodes;
  std::vector<int64_t> to_index;
  std::vector<Track> tracks;
  std::function<void(const V3Fault&)> on_fault;

  void sort();
  void drop_duplicates();
  void place(Track& track);
  void check_table(const Track& track, size_t i, double base) const;
  void check_video(const Track& track, size_t i) const;
};

V3MetaBuilder::V3MetaBuilder(const fs::path& root, const LerobotInfo& info)
    : impl_(std::make_unique<Impl>()) {
  impl_->root = root;
  impl_->info = info;
  impl_->tracks.emplace_back();
  for (const std::string& camera : v3_cameras(info)) impl_->tracks.emplace_back().camera = camera;
}
V3MetaBuilder::~V3MetaBuilder() = default;

void V3MetaBuilder::add(V3Row row) {
  WAM_CHECK(row.videos.size() + 1 == impl_->tracks.size());
  const auto append = [](Track& track, int64_t chunk, int64_t file, double order) {
    track.file.push_back(chunk < 0 ? -1 : track.files.id(chunk, file));
    track.order.push_back(order);
  };
  append(impl_->tracks[0], row.data_chunk, row.data_file, static_cast<double>(row.dataset_from));
  for (size_t c = 0; c < row.videos.size(); ++c) {
    const V3Video& video = row.videos[c];
    append(impl_->tracks[c + 1], video.chunk_index, video.file_index, video.from_timestamp);
  }
  impl_->to_index.push_back(row.dataset_to);
  impl_->episodes.push_back(std::move(row.episode));
}

// Ascending by index.
void V3MetaBuilder::Impl::sort() {
  const auto by_index = [](const Episode& a, const Episode& b) { return a.index < b.index; };
  if (std::is_sorted(episodes.begin(), episodes.end(), by_index)) return;
  std::vector<int64_t> order(episodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return episodes[static_cast<size_t>(a)].index < episodes[static_cast<size_t>(b)].index;
  });
  for (Track& track : tracks) {
    permute(track.file, order);
    permute(track.order, order);
  }
  permute(to_index, order);
  permute(episodes, order);
}

void V3MetaBuilder::Impl::drop_duplicates() {
  std::vector<int64_t> kept;
  for (size_t i = 0; i < episodes.size(); ++i) {
    if (i == 0 || episodes[i].index != episodes[i - 1].index) {
      kept.push_back(static_cast<int64_t>(i));
      continue;
    }
    on_fault({"episode-duplicate",
              episodes[i].index,
              {.where = (root / "meta" / "episodes").string(),
               .what = "episode_index given twice",
               .got = std::to_string(episodes[i].index),
               .expected = "one row an episode",
               .remedy = "Remove one of the rows."}});
  }
  if (kept.size() == episodes.size()) return;
  for (Track& track : tracks) {
    permute(track.file, kept);
    permute(track.order, kept);
  }
  permute(to_index, kept);
  permute(episodes, kept);
}

void V3MetaBuilder::Impl::check_table(const Track& track, size_t i, double base) const {
  if (track.order[i] < 0) return;  // not stated
  const int64_t stated = static_cast<int64_t>(track.order[i] - base);
  const int64_t length = to_index[i] - static_cast<int64_t>(track.order[i]);
  const bool has_end = to_index[i] >= 0;
  if (stated == track.first[i] && (!has_end || length == episodes[i].length)) return;
  const bool is_start = stated != track.first[i];
  on_fault(
      {"table-offset",
       episodes[i].index,
       {.where = (root / "meta" / "episodes").string() + ": episode " +
                 std::to_string(episodes[i].index),
        .what = is_start ? "dataset_from_index is not where the lengths of the file's earlier "
                           "episodes end"
                         : "dataset_to_index is not length rows after dataset_from_index",
        .got = std::to_string(is_start ? stated : length) + " rows",
        .expected = std::to_string(is_start ? track.first[i] : episodes[i].length),
        .remedy = "Restore meta/episodes or convert the dataset again; `wam validate` lists every "
                  "such episode."}});
}

void V3MetaBuilder::Impl::check_video(const Track& track, size_t i) const {
  const double stated = track.order[i] * info.fps;
  if (std::abs(stated - static_cast<double>(track.first[i])) < 0.5) return;  // NaN fails
  on_fault({"video-offset",
            episodes[i].index,
            {.where = (root / "meta" / "episodes").string() + ": episode " +
                      std::to_string(episodes[i].index) + ", camera " + quote(track.camera),
             .what = "from_timestamp is not where the lengths of the file's earlier episodes end",
             .got = std::to_string(track.order[i]) + " s, frame " + std::to_string(stated),
             .expected = "frame " + std::to_string(track.first[i]) + " within half a frame",
             .remedy = "Restore meta/episodes or convert the dataset again; `wam validate` lists "
                       "every such episode."}});
}

// Adds up the lengths within each file, in the order of what is stated.
void V3MetaBuilder::Impl::place(Track& track) {
  std::vector<int64_t> order(episodes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int64_t a, int64_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    // NaN would break the order: it counts as 0 here and is a fault later.
    const auto key = [&](size_t k) { return std::isnan(track.order[k]) ? 0.0 : track.order[k]; };
    if (track.file[i] != track.file[j]) return track.file[i] < track.file[j];
    if (key(i) != key(j)) return key(i) < key(j);
    return a < b;
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::sort(order.begin(), order.end(), before);
  }
  track.first.assign(episodes.size(), 0);
  double base = 0;  // what the file's first episode states
  for (const int64_t position : order) {
    const auto i = static_cast<size_t>(position);
    if (track.file[i] < 0) continue;
    SharedFile& file = track.files[track.file[i]];
    if (file.episodes == 0) base = track.order[i];
    track.first[i] = file.total;
    file.total += episodes[i].length;
    ++file.episodes;
    track.camera.empty() ? check_table(track, i, base) : check_video(track, i);
  }
  track.order = {};
}

LerobotMeta V3MetaBuilder::finish(const std::function<void(const V3Fault&)>& on_fault) {
  impl_->on_fault = on_fault;
  impl_->sort();
  impl_->drop_duplicates();
  for (Track& track : impl_->tracks) impl_->place(track);
  std::vector<int64_t> indexes;
  indexes.reserve(impl_->episodes.size());
  for (const Episode& episode : impl_->episodes) indexes.push_back(episode.index);
  return {std::move(impl_->episodes),
          {},
          std::make_unique<LayoutV3>(impl_->root, impl_->info, std::move(indexes),
                                     std::move(impl_->tracks))};
}

LerobotMeta read_lerobot_v3(const fs::path& root, const LerobotInfo& info) {
  V3MetaBuilder builder(root, info);
  int64_t num_rows = 0;
  for (const fs::path& file : v3_episode_files(root)) {
    for_each_v3_row(file, info, [&](V3Row& row, int64_t i) {
      // The place in words is only needed when it is wrong.
      if (row.episode.length < 1) {
        check_episode(row.episode, file.string() + ", row " + std::to_string(i));
      }
      ++num_rows;
      builder.add(std::move(row));
    });
  }
  if (num_rows == 0) {
    throw DataError({.where = (root / "meta" / "episodes").string(),
                     .what = "dataset is empty",
                     .got = "no episodes",
                     .expected = "1 or more",
                     .remedy = "Record or restore episodes."});
  }
  std::vector<int64_t> discarded = info.discarded_episodes;
  std::sort(discarded.begin(), discarded.end());
  LerobotMeta meta = builder.finish([&](const V3Fault& fault) {
    // Whoever lists a damaged episode there has dealt with it.
    if (std::binary_search(discarded.begin(), discarded.end(), fault.episode)) return;
    throw CodedError(fault.code, fault.info);
  });
  meta.tasks = read_v3_tasks(root);
  return meta;
}

}  // namespace wam::data
