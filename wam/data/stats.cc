#include "wam/data/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/base/quote.h"
#include "wam/data/rank_search.h"
#include "wam/data/slice_lookup.h"

namespace wam::data {
namespace {

// Statistics of one number: a first pass for the moments, further passes for the percentiles.
class NumberStats {
 public:
  void add_moment(double value) {
    ++count_;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    // Welford: exact enough for any offset, and in the order of the data.
    const double delta = value - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (value - mean_);
  }
  void end_moments() {
    if (count_ == 0) return;
    for (const double q : {0.01, 0.99}) {
      const QuantilePlace place = quantile_place(q, count_);
      fractions_.push_back(place.fraction);
      for (const int64_t rank : {place.low, place.high}) searches_.emplace_back(rank, min_, max_);
    }
  }
  bool is_done() const {
    return std::all_of(searches_.begin(), searches_.end(),
                       [](const RankSearch& search) { return search.is_done(); });
  }
  void start_pass() {
    for (RankSearch& search : searches_) search.start_pass();
  }
  void add_rank(double value) {
    for (RankSearch& search : searches_) search.add(value);
  }
  void end_pass() {
    for (RankSearch& search : searches_) search.end_pass();
  }
  int64_t count() const { return count_; }
  void append_to(StatTable& table) const {
    table["min"].push_back(min_);
    table["max"].push_back(max_);
    table["mean"].push_back(mean_);
    table["std"].push_back(std::sqrt(squares_ / static_cast<double>(count_)));
    table["q01"].push_back(interpolate(searches_[0].value(), searches_[1].value(), fractions_[0]));
    table["q99"].push_back(interpolate(searches_[2].value(), searches_[3].value(), fractions_[1]));
  }

 private:
  int64_t count_ = 0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double mean_ = 0, squares_ = 0;
  std::vector<RankSearch> searches_;  // low and high rank of each percentile
  std::vector<double> fractions_;
};

struct SliceState {
  StatsSlice slice;
  std::vector<NumberStats> numbers;  // [width], or [horizon * width] with own steps
};

class StatsRun {
 public:
  StatsRun(const Dataset& dataset, const std::vector<StatsSlice>& slices,
           const StatsOptions& options);
  NormStats run();

 private:
  template <typename Add>
  void pass(Add&& add);
  template <typename Add>
  void visit_slice(const EpisodeTable& table, SliceState& state, Add&& add) const;
  bool is_done() const;
  NormStats result() const;

  const Dataset& dataset_;
  const StatsOptions& options_;
  std::vector<SliceState> states_;
  std::vector<std::string> columns_;
  std::vector<const Episode*> episodes_;
  int64_t num_read_ = 0;
};

StatsRun::StatsRun(const Dataset& dataset, const std::vector<StatsSlice>& slices,
                   const StatsOptions& options)
    : dataset_(dataset), options_(options) {
  WAM_CHECK(options.horizon >= 1) << options.horizon;
  std::set<std::string> columns;
  for (const StatsSlice& slice : slices) {
    StatsSlice stepped = slice;
    stepped.per_step = slice.per_step || (slice.is_relative() && options.per_step);
    const int64_t size = slice.width() * (stepped.per_step ? options.horizon : 1);
    states_.push_back({stepped, std::vector<NumberStats>(static_cast<size_t>(size))});
    columns.insert(slice.column);
    if (slice.is_relative()) columns.insert(slice.state_column);
  }
  columns_.assign(columns.begin(), columns.end());
  const std::set<int64_t> chosen(options.episodes.begin(), options.episodes.end());
  for (const Episode& episode : dataset.episodes()) {
    if (chosen.empty() || chosen.contains(episode.index)) episodes_.push_back(&episode);
  }
}

// Calls add(stats, value) for every value of the slice in an episode.
template <typename Add>
void StatsRun::visit_slice(const EpisodeTable& table, SliceState& state, Add&& add) const {
  const StatsSlice& slice = state.slice;
  const HostTensor& column = table.numeric.at(slice.column);
  const int64_t column_width = column.shape()[1], width = slice.width();
  const double* values = column.as<double>().data() + slice.begin;
  if (!slice.is_relative() && !slice.per_step) {
    for (int64_t row = 0; row < table.num_rows; ++row) {
      for (int64_t i = 0; i < width; ++i) add(state.numbers[i], values[row * column_width + i]);
    }
    return;
  }
  const HostTensor* states = slice.is_relative() ? &table.numeric.at(slice.state_column) : nullptr;
  const auto origin = [&](int64_t row, int64_t i) {
    if (states == nullptr) return 0.0;
    return states
        ->as<double>()[static_cast<size_t>(row * states->shape()[1] + slice.state_begin + i)];
  };
  for (int64_t row = 0; row + options_.horizon <= table.num_rows; ++row) {
    for (int64_t step = 0; step < options_.horizon; ++step) {
      for (int64_t i = 0; i < width; ++i) {
        const int64_t number = (slice.per_step ? step * width : 0) + i;
        add(state.numbers[number], values[(row + step) * column_width + i] - origin(row, i));
      }
    }
  }
}

template <typename Add>
void StatsRun::pass(Add&& add) {
  for (const Episode* episode : episodes_) {
    const EpisodeTable table = dataset_.read_columns(*episode, columns_);
    for (SliceState& state : states_) visit_slice(table, state, add);
    ++num_read_;
    if (options_.progress) options_.progress(num_read_, std::ssize(episodes_));
  }
}

bool StatsRun::is_done() const {
  return std::all_of(states_.begin(), states_.end(), [](const SliceState& state) {
    return std::all_of(state.numbers.begin(), state.numbers.end(),
                       [](const NumberStats& number) { return number.is_done(); });
  });
}

NormStats StatsRun::run() {
  pass([](NumberStats& number, double value) { number.add_moment(value); });
  for (SliceState& state : states_) {
    if (state.numbers.front().count() == 0) {
      throw DataError(
          {.where = dataset_.root().string(),
           .what =
               "no episode is long enough for statistics over chunks of " + quote(state.slice.key),
           .expected = "an episode of " + std::to_string(options_.horizon) + " rows or more",
           .remedy = "Lower the horizon."});
    }
    for (NumberStats& number : state.numbers) number.end_moments();
  }
  while (!is_done()) {
    const auto for_all = [&](auto&& function) {
      for (SliceState& state : states_) {
        for (NumberStats& number : state.numbers) function(number);
      }
    };
    for_all([](NumberStats& number) { number.start_pass(); });
    pass([](NumberStats& number, double value) { number.add_rank(value); });
    for_all([](NumberStats& number) { number.end_pass(); });
  }
  return result();
}

NormStats StatsRun::result() const {
  NormStats stats;
  stats.source = dataset_.root().string();
  for (const SliceState& state : states_) {
    auto& group = state.slice.is_action ? stats.action : stats.state;
    KeyStats& key = group[state.slice.key];
    key = {.width = state.slice.width()};
    for (const NumberStats& number : state.numbers) number.append_to(key.values);
  }
  return stats;
}

void make_relative(StatsSlice& action, const std::vector<StatsSlice>& slices) {
  for (const StatsSlice& state : slices) {
    if (state.is_action || state.key != action.key || state.width() != action.width()) continue;
    action.state_column = state.column;
    action.state_begin = state.begin;
    return;
  }
  throw ConfigError({.where = "relative action " + quote(action.key),
                     .what = "there is no state of that key and width to be relative to",
                     .remedy = "Name keys that are both state and action."});
}

void apply_relative(std::vector<StatsSlice>& slices, const std::vector<std::string>& relative) {
  for (const std::string& key : relative) {
    const auto found = std::find_if(slices.begin(), slices.end(), [&](const StatsSlice& slice) {
      return slice.is_action && slice.key == key;
    });
    if (found == slices.end()) {
      throw ConfigError({.where = "relative action " + quote(key),
                         .what = "there is no action of that key",
                         .remedy = "Name keys that are both state and action."});
    }
    make_relative(*found, slices);
  }
}

}  // namespace

std::vector<StatsSlice> modality_slices(const Dataset& dataset,
                                        const std::vector<std::string>& relative) {
  std::vector<StatsSlice> slices;
  const auto add = [&](const std::vector<ModalitySlice>& group, bool is_action) {
    for (const ModalitySlice& slice : group) {
      slices.push_back({is_action, slice.key, slice.original_key, slice.begin, slice.end});
    }
  };
  add(dataset.modality().state, false);
  add(dataset.modality().action, true);
  apply_relative(slices, relative);
  return slices;
}

std::vector<StatsSlice> embodiment_slices(const Dataset& dataset, const Embodiment& embodiment) {
  std::vector<StatsSlice> slices;
  const auto add = [&](const std::vector<SliceSpec>& group, const char* modality) {
    for (const SliceSpec& spec : group) {
      const FoundSlice found = find_slice(dataset, modality, spec);
      slices.push_back({std::string_view(modality) == "action", found.key, found.column,
                        found.begin, found.end});
      slices.back().per_step = spec.per_horizon;
    }
  };
  add(embodiment.state, "state");
  add(embodiment.action, "action");
  apply_relative(slices, embodiment.relative_action_keys);
  return slices;
}

NormStats compute_statistics(const Dataset& dataset, const std::vector<StatsSlice>& slices,
                             const StatsOptions& options) {
  if (slices.empty()) return {.source = dataset.root().string()};
  return StatsRun(dataset, slices, options).run();
}

}  // namespace wam::data
