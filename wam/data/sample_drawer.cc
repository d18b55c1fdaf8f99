#include "wam/data/sample_drawer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::data {
namespace {

// With one row in a thousand serving, all these fail once in 10^43 samples.
constexpr int64_t kMaxAttempts = 100'000;
// Draws rejected by language cost a table read each.
constexpr int64_t kMaxTableReads = 2'000;
constexpr size_t kListed = 20;

[[noreturn]] void throw_none_left(const std::vector<DrawSource>& sources,
                                  const SamplingReport& report) {
  int64_t longest = 0, needed = 0;
  for (const ExcludedEpisode& e : report.excluded) longest = std::max(longest, e.length);
  for (const DrawSource& source : sources) {
    needed = std::max(needed, source.sampler.min_episode_length());
  }
  throw DataError(
      {.where = sources.empty() ? "data" : sources[0].name,
       .what = "no episode is as long as a window",
       .got = fmt::format("{} episodes, the longest of {} rows", report.excluded.size(), longest),
       .expected = fmt::format("at least {} rows", needed),
       .remedy = "Lower model.num_blocks, macro_stride or action_horizon."});
}

}  // namespace

std::string SamplingReport::text() const {
  std::string text = fmt::format("{} episodes, {} rows to draw, {} of them give no window",
                                 num_episodes, num_rows, num_rows - num_serving);
  if (sources.size() > 1) {
    for (const SourceReport& source : sources) {
      text += fmt::format("; {:.4g} % of the samples from {} ({} episodes, {} rows)",
                          100 * source.share, source.name, source.num_episodes, source.num_rows);
    }
  }
  if (excluded.empty()) return text;
  text += fmt::format("; {} episodes too short and left out:", excluded.size());
  for (size_t i = 0; i < std::min(kListed, excluded.size()); ++i) {
    const ExcludedEpisode& e = excluded[i];
    text += fmt::format("{} {} ({} rows, {} needed)", i == 0 ? "" : ",", e.episode_index, e.length,
                        e.needed);
  }
  if (excluded.size() > kListed) text += fmt::format(" and {} more", excluded.size() - kListed);
  return text;
}

SampleDrawer::SampleDrawer(std::vector<DrawSource> sources, uint64_t seed,
                           int64_t global_batch_size)
    : sources_(std::move(sources)), seed_(seed), global_batch_size_(global_batch_size) {
  WAM_CHECK(global_batch_size > 0);
  std::vector<int64_t> dataset_rows;
  std::vector<double> weights;
  for (int64_t d = 0; d < std::ssize(sources_); ++d) {
    add_rows(d);
    dataset_rows.push_back(rows_.back().starts.back());
    if (sources_[static_cast<size_t>(d)].weight != 0) {
      weights.push_back(sources_[static_cast<size_t>(d)].weight);
    }
    if (dataset_rows.back() == 0) throw_none_left({sources_[static_cast<size_t>(d)]}, report_);
  }
  if (sources_.empty()) throw_none_left(sources_, report_);
  order_ = std::make_unique<SampleOrder>(std::move(dataset_rows), weights, seed);
  for (size_t d = 0; d < sources_.size(); ++d) {
    report_.sources[d].share = order_->share(static_cast<int64_t>(d));
  }
  serving_.clear();
}

void SampleDrawer::add_rows(int64_t dataset) {
  const DrawSource& source = sources_[static_cast<size_t>(dataset)];
  serving_.emplace_back();
  Rows rows{{}, {0}, {}};
  rows.positions.reserve(source.positions.size());
  rows.starts.reserve(source.positions.size() + 1);
  int64_t last_position = -1, num_episodes = 0;
  for (int64_t position : source.positions) {
    const EpisodeLength& episode = source.episodes.at(static_cast<size_t>(position));
    int64_t begin = 0;
    if (const auto dropped = source.dropped.find(position); dropped != source.dropped.end()) {
      for (const RowRange& range : dropped->second) {
        if (range.begin > begin) add_part(dataset, position, {begin, range.begin}, rows);
        begin = range.end;
      }
    }
    if (begin < episode.length) add_part(dataset, position, {begin, episode.length}, rows);
    const bool is_used = !rows.positions.empty() && rows.positions.back() == position;
    if (is_used && position != last_position) ++num_episodes;
    last_position = position;
  }
  report_.num_episodes += num_episodes;
  report_.num_rows += rows.starts.back();
  report_.sources.push_back({source.name, num_episodes, rows.starts.back()});
  rows_.push_back(std::move(rows));
}

void SampleDrawer::add_part(int64_t dataset, int64_t position, RowRange part, Rows& rows) {
  const DrawSource& source = sources_[static_cast<size_t>(dataset)];
  const int64_t needed = source.sampler.min_episode_length(), length = part.end - part.begin;
  if (length < needed) {
    const int64_t index = source.episodes[static_cast<size_t>(position)].index;
    report_.excluded.push_back({dataset, index, length, needed});
    return;
  }
  if (part.begin > 0 && rows.first.empty()) rows.first.assign(rows.positions.size(), 0);
  if (!rows.first.empty() || part.begin > 0) rows.first.push_back(part.begin);
  rows.positions.push_back(position);
  rows.starts.push_back(rows.starts.back() + length);
  const auto [entry, is_new] = serving_.back().try_emplace(length, 0);
  if (is_new) entry->second = source.sampler.count_serving(length, {});
  report_.num_serving += entry->second;
}

Draw SampleDrawer::try_row(const OrderedRow& row, const Labels& labels, bool& served) const {
  const auto d = static_cast<size_t>(row.dataset);
  const Rows& rows = rows_[d];
  const auto next = std::upper_bound(rows.starts.begin(), rows.starts.end(), row.row);
  const auto at = static_cast<size_t>(next - rows.starts.begin()) - 1;
  Draw draw{{}, rows.positions[at]};
  const EpisodeLength& episode = sources_[d].episodes[static_cast<size_t>(draw.position)];
  const int64_t first = row.row - rows.starts[at], length = rows.starts[at + 1] - rows.starts[at];
  served = sources_[d].sampler.may_serve(first, length);
  if (!served) return draw;
  const auto ids = labels(row.dataset, draw.position);
  const int64_t offset = rows.first.empty() ? 0 : rows.first[at];
  std::span<const int64_t> part = *ids;
  if (!part.empty()) {
    WAM_CHECK(std::ssize(part) >= offset + length) << part.size() << " labels";
    part = part.subspan(static_cast<size_t>(offset), static_cast<size_t>(length));
  }
  const auto window = sources_[d].sampler.window(first, length, part);
  if (!window) return draw;
  draw.window = *window;
  for (auto* list : {&draw.window.frame_rows, &draw.window.action_rows, &draw.window.state_rows}) {
    for (int64_t& r : *list) r += offset;
  }
  draw.window.id = {row.dataset, episode.index, offset + first, 0};
  return draw;
}

Draw SampleDrawer::draw(int64_t step, int64_t index, const Labels& labels) const {
  WAM_CHECK(step >= 0 && index >= 0 && index < global_batch_size_);
  const uint64_t place = static_cast<uint64_t>(step) * static_cast<uint64_t>(global_batch_size_) +
                         static_cast<uint64_t>(index);
  OrderedRow row = order_->at(place);
  Random random(seed_, RandomUse::kWindow, static_cast<uint64_t>(step),
                static_cast<uint64_t>(index));
  int64_t table_reads = 0;
  for (int64_t attempt = 0; attempt < kMaxAttempts && table_reads < kMaxTableReads; ++attempt) {
    bool read_table = false;
    Draw draw = try_row(row, labels, read_table);
    if (!draw.window.frame_rows.empty()) {
      draw.window.id.attempt = attempt;
      return draw;
    }
    table_reads += read_table ? 1 : 0;
    row = order_->redraw(row, random);
  }
  throw DataError({.where = sources_[static_cast<size_t>(row.dataset)].name,
                   .what = "no window found for step " + std::to_string(step) + ", sample " +
                           std::to_string(index),
                   .got = std::to_string(table_reads) + " draws stopped by a change of language",
                   .expected = "instructions that last for a window",
                   .remedy = "Run `wam validate`; lower model.num_blocks or macro_stride, or set "
                             "language_keys to the column that holds the instruction."});
}

}  // namespace wam::data
