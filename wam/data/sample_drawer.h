// Draws the windows of a run: the row at a place of the sample order, and where it gives no window,
// others in its stead. A pure function of (seed, step, index).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "wam/data/index_ranges.h"
#include "wam/data/sample_order.h"
#include "wam/data/sampler.h"

namespace wam::data {

struct EpisodeLength {
  int64_t index = 0, length = 0;  // as in Episode
};

// One dataset of the run: its sampler and the episodes to draw from.
struct DrawSource {
  WindowSampler sampler;
  std::vector<EpisodeLength> episodes;  // all of the dataset
  std::vector<int64_t> positions;       // of those used
  double weight = 0;                    // 0 everywhere: no weights
  std::string name;                     // for messages
  // Rows that no window may touch, by position: ascending, disjoint, within the episode. What lies
  // between them counts as an episode of its own.
  std::map<int64_t, std::vector<RowRange>> dropped = {};
};

struct ExcludedEpisode {
  int64_t dataset = 0, episode_index = 0, length = 0, needed = 0;
};

// What one of several datasets contributes.
struct SourceReport {
  std::string name;
  int64_t num_episodes = 0, num_rows = 0;
  double share = 1;  // of the samples
};

struct SamplingReport {
  int64_t num_episodes = 0;  // used
  int64_t num_rows = 0;      // of them: every one can be drawn
  int64_t num_serving = 0;   // rows that give a window as far as lengths tell (languages aside)
  std::vector<ExcludedEpisode> excluded;  // episodes, or parts of them, shorter than a window
  std::vector<SourceReport> sources;

  // "1690 episodes, 273000 rows to draw, ...; 3 too short: 12 (40 rows, 73 needed), ..."
  std::string text() const;
};

struct Draw {
  Window window;         // with its id
  int64_t position = 0;  // of the episode in its dataset
};

class SampleDrawer {
 public:
  // One id per row of the episode at `position` of `dataset`: equal where the language is. Called
  // from several threads, only for rows whose length would do.
  using Labels =
      std::function<std::shared_ptr<const std::vector<int64_t>>(int64_t dataset, int64_t position)>;

  // Throws DataError if no episode is long enough, naming the need.
  SampleDrawer(std::vector<DrawSource> sources, uint64_t seed, int64_t global_batch_size);

  const SamplingReport& report() const { return report_; }
  const SampleOrder& order() const { return *order_; }
  // Sample `index` of the global batch of `step`. Throws DataError after too many rejected draws.
  Draw draw(int64_t step, int64_t index, const Labels& labels) const;

 private:
  struct Rows {
    std::vector<int64_t> positions;
    std::vector<int64_t> starts;  // rows before each used part; one more than positions
    std::vector<int64_t> first;   // row of the episode at which the part begins; empty: all 0
  };
  void add_part(int64_t dataset, int64_t position, RowRange part, Rows& rows);
  void add_rows(int64_t dataset);
  Draw try_row(const OrderedRow& row, const Labels& labels, bool& served) const;

  std::vector<DrawSource> sources_;
  std::vector<Rows> rows_;
  std::unique_ptr<SampleOrder> order_;
  SamplingReport report_;
  std::vector<std::unordered_map<int64_t, int64_t>> serving_;  // rows that serve, by length
  uint64_t seed_;
  int64_t global_batch_size_;
};

}  // namespace wam::data
