#include "wam/data/lerobot_v2.h"

#include "wam/base/error.h"
#include "wam/data/lerobot_meta.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

PathFields fields_of(const LerobotInfo& info, int64_t episode_index) {
  return {.episode_index = episode_index, .episode_chunk = episode_index / info.chunks_size};
}

class LayoutV2 : public EpisodeLayout {
 public:
  LayoutV2(const fs::path& root, const LerobotInfo& info) : root_(root), info_(info) {}
  FrameSource table(const Episode& episode) const override {
    return {.path = table_path(root_, info_, episode.index), .total = episode.length};
  }
  FrameSource video(const Episode& episode, const std::string& camera) const override {
    return {.path = video_path(root_, info_, episode.index, camera), .total = episode.length};
  }

 private:
  fs::path root_;
  LerobotInfo info_;
};

}  // namespace

fs::path table_path(const fs::path& root, const LerobotInfo& info, int64_t episode_index) {
  return root / info.data_path.expand(fields_of(info, episode_index));
}

fs::path video_path(const fs::path& root, const LerobotInfo& info, int64_t episode_index,
                    const std::string& camera) {
  require_video_path(info, root, camera);
  PathFields fields = fields_of(info, episode_index);
  fields.video_key = camera;
  return root / info.video_path.expand(fields);
}

LerobotMeta read_lerobot_v2(const fs::path& root, const LerobotInfo& info) {
  return {read_episodes(root), read_tasks(root), make_layout_v2(root, info)};
}

std::unique_ptr<EpisodeLayout> make_layout_v2(const fs::path& root, const LerobotInfo& info) {
  return std::make_unique<LayoutV2>(root, info);
}

}  // namespace wam::data
