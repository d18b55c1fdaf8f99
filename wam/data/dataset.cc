#include "wam/data/dataset.h"

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/lerobot_info.h"
#include "wam/data/lerobot_v2.h"

namespace wam::data {

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
  return open_lerobot_v2(root, read_lerobot_info(root));
}

}  // namespace wam::data
