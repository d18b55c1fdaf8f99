#include "wam/data/dataset.h"

#include <utility>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/lerobot_info.h"
#include "wam/data/lerobot_v2.h"
#include "wam/data/lerobot_v3.h"

namespace wam::data {

void FrameReader::read_each(const Episode& episode, const std::string& camera_feature,
                            std::span<const int64_t> rows, const Sink& sink) {
  const HostTensor pictures = read(episode, camera_feature, rows);
  const auto bytes = pictures.as<uint8_t>();
  const size_t size = rows.empty() ? 0 : bytes.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i) sink(i, bytes.subspan(i * size, size));
}

EpisodeTable Dataset::read_columns(const Episode& episode,
                                   std::span<const std::string> columns) const {
  EpisodeTable all = read_table(episode);
  EpisodeTable table{.num_rows = all.num_rows};
  for (const std::string& column : columns) {
    if (all.numeric.contains(column)) table.numeric[column] = all.numeric.at(column);
    if (all.text.contains(column)) table.text[column] = all.text.at(column);
    if (table.numeric.contains(column) || table.text.contains(column)) continue;
    throw DataError({.where = root().string() + ": episode " + std::to_string(episode.index),
                     .what = "column " + quote(column) + " is missing",
                     .remedy = "Correct the key in the embodiment, or record the column."});
  }
  return table;
}

const std::vector<int64_t>& Dataset::discarded_episodes() const {
  static const std::vector<int64_t> none;
  return none;
}

std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& root) {
  LerobotInfo info = read_lerobot_info(root);
  LerobotMeta meta = info.is_v3() ? read_lerobot_v3(root, info) : read_lerobot_v2(root, info);
  return make_lerobot_dataset(root, std::move(info), std::move(meta));
}

}  // namespace wam::data
