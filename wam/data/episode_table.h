// One episode's rows of a parquet file as an EpisodeTable, with every check that training relies
// on.
#pragma once

#include <span>
#include <string>

#include "wam/data/dataset.h"
#include "wam/data/lerobot_layout.h"
#include "wam/data/parquet_reader.h"

namespace wam::data {

// What the meta folder says of a table.
struct TableRules {
  std::span<const Feature> features;
  const Modality* modality = nullptr;  // its state and action columns must be finite
};

// Reads `columns`, or all of numbers and strings when empty. Throws DataError: see
// Dataset::read_table.
EpisodeTable read_episode_table(const FrameSource& source, const Episode& episode,
                                const TableRules& rules, std::span<const std::string> columns);

// Throws DataError unless the file holds the rows that the meta promises and, where episodes share
// it, those of `source` are this episode's by their episode_index.
void check_table_rows(const ParquetReader& reader, const FrameSource& source,
                      const Episode& episode);

// First value that is NaN or infinite, as a place in the row-major values; -1 if there is none.
int64_t find_non_finite(std::span<const double> values);

}  // namespace wam::data
