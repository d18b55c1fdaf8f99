#include "wam/data/episode_table.h"

#include <algorithm>
#include <cmath>

#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/coded_error.h"

namespace wam::data {
namespace {

const Feature* find_feature(std::span<const Feature> features, const std::string& key) {
  const auto found = std::find_if(features.begin(), features.end(),
                                  [&](const Feature& feature) { return feature.key == key; });
  return found == features.end() ? nullptr : &*found;
}

bool is_state_or_action(const Modality& modality, const std::string& column) {
  const auto uses = [&](const ModalitySlice& slice) { return slice.original_key == column; };
  return std::any_of(modality.state.begin(), modality.state.end(), uses) ||
         std::any_of(modality.action.begin(), modality.action.end(), uses);
}

class TableReader {
 public:
  TableReader(const FrameSource& source, const Episode& episode, const TableRules& rules)
      : file_(source.path.string()),
        source_(source),
        episode_(episode),
        rules_(rules),
        reader_(source.path) {}

  EpisodeTable read(std::span<const std::string> columns) {
    check_table_rows(reader_, source_, episode_);
    table_.num_rows = episode_.length;
    if (columns.empty()) {
      for (const ParquetColumnInfo& column : reader_.columns()) read_column(column);
    }
    for (const std::string& name : columns) read_column(require_column(name));
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& what, const std::string& got,
                         const std::string& expected, const std::string& remedy) const {
    throw DataError({.where = file_ + (place.empty() ? "" : ": " + place),
                     .what = what,
                     .got = got,
                     .expected = expected,
                     .remedy = remedy});
  }

  const ParquetColumnInfo& require_column(const std::string& name) const {
    const ParquetColumnInfo* column = reader_.find_column(name);
    if (column == nullptr) {
      fail("", "column " + quote(name) + " is missing", "", "as in meta/info.json",
           "Name another column in the config, or restore the file.");
    }
    if (column->kind == ParquetKind::kNumber || column->kind == ParquetKind::kText) return *column;
    fail("column " + quote(name), "column of the wrong type", column->type, "numbers or strings",
         "Name another column in the config.");
  }

  void read_column(const ParquetColumnInfo& column) {
    if (column.kind == ParquetKind::kText) {
      table_.text[column.name] = reader_.read_text(column.name, source_.first, episode_.length);
    }
    if (column.kind != ParquetKind::kNumber) return;
    HostTensor values = reader_.read_numbers(column.name, source_.first, episode_.length);
    check_width(column.name, values);
    check_finite(column.name, values);
    table_.numeric[column.name] = std::move(values);
  }

  void check_width(const std::string& column, const HostTensor& values) const {
    const Feature* feature = find_feature(rules_.features, column);
    const int64_t width = values.shape()[1];
    if (feature == nullptr || values.shape()[0] == 0 || width == feature->width()) return;
    fail("column " + quote(column), "rows have another width than meta/info.json says",
         std::to_string(width), std::to_string(feature->width()),
         "Correct meta/info.json, or restore the file.");
  }

  void check_finite(const std::string& column, const HostTensor& values) const {
    if (rules_.modality == nullptr || !is_state_or_action(*rules_.modality, column)) return;
    const int64_t place = find_non_finite(values.as<double>());
    if (place < 0) return;
    const int64_t width = values.shape()[1];
    fail("column " + quote(column) + ", row " + std::to_string(place / width) + ", dim " +
             std::to_string(place % width),
         "state or action is not a finite number",
         std::to_string(values.as<double>()[static_cast<size_t>(place)]), "finite numbers",
         "Repair the row or leave the episode out.");
  }

  std::string file_;
  const FrameSource& source_;
  const Episode& episode_;
  const TableRules& rules_;
  ParquetReader reader_;
  EpisodeTable table_;
};

// Where several episodes share a file, an offset that is off by a row would mix two of them.
void check_key(const ParquetReader& reader, const FrameSource& source, const Episode& episode) {
  constexpr const char* kColumn = "episode_index";
  const std::string file = source.path.string();
  if (reader.find_column(kColumn) == nullptr) {
    throw DataError({.where = file,
                     .what = "column 'episode_index' is missing from a file of several episodes",
                     .remedy = "Restore the column: it says which rows are an episode's."});
  }
  const HostTensor keys = reader.read_numbers(kColumn, source.first, episode.length);
  const auto values = keys.as<double>();
  const auto wrong = std::find_if(values.begin(), values.end(), [&](double key) {
    return key != static_cast<double>(episode.index);
  });
  if (wrong == values.end()) return;
  throw CodedError("episode-index",
                   {.where = file + ": column 'episode_index', row " +
                             std::to_string(source.first + (wrong - values.begin())),
                    .what = "row of another episode than the meta says",
                    .got = std::to_string(*wrong),
                    .expected = std::to_string(episode.index),
                    .remedy = "The offsets or file indices of meta/episodes do not belong to this "
                              "file: restore them, or run `wam validate`."});
}

}  // namespace

int64_t find_non_finite(std::span<const double> values) {
  const auto found =
      std::find_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  return found == values.end() ? -1 : found - values.begin();
}

void check_table_rows(const ParquetReader& reader, const FrameSource& source,
                      const Episode& episode) {
  const std::string file = source.path.string();
  const int64_t rows = reader.num_rows();
  const bool fits = source.is_shared ? rows >= source.total : rows == source.total;
  if (!fits) {
    throw DataError({.where = file,
                     .what = source.is_shared
                                 ? "table has fewer rows than the meta puts into it"
                                 : "table has another number of rows than the meta says",
                     .got = std::to_string(rows),
                     .expected = std::to_string(source.total),
                     .remedy = "Run `wam validate`, then correct the meta or leave the episode "
                               "out."});
  }
  if (source.is_shared) check_key(reader, source, episode);
}

EpisodeTable read_episode_table(const FrameSource& source, const Episode& episode,
                                const TableRules& rules, std::span<const std::string> columns) {
  return TableReader(source, episode, rules).read(columns);
}

}  // namespace wam::data
