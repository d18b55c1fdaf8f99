// The samples of a run from its datasets: draws windows, reads tables and pictures, builds samples.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wam/data/loader.h"
#include "wam/data/sample_builder.h"
#include "wam/data/sample_drawer.h"
#include "wam/data/table_cache.h"

namespace wam::data {

// One dataset of the run.
struct SourcePart {
  std::shared_ptr<const SampleBuilder> builder;
  std::vector<int64_t> episode_positions;  // episodes to draw from, see split.h
  double weight = 0;                       // 0 for all parts: every row alike
  std::string name = {};                   // for messages and metrics; empty: the folder
  std::map<int64_t, std::vector<RowRange>> dropped = {};  // see DrawSource
};

struct SourceOptions {
  SamplingMode mode = SamplingMode::kMultiAnchor;
  uint64_t seed = 0;
  int64_t global_batch_size = 1;
  int64_t table_cache_bytes = int64_t{256} << 20;
};

class DatasetSource : public SampleSource {
 public:
  // Throws ConfigError if parts differ in what a batch must share (blocks, horizon, tiled size,
  // padded widths), DataError if no episode is long enough.
  DatasetSource(std::vector<SourcePart> parts, SourceOptions options);

  const SamplingReport& report() const { return drawer_->report(); }
  const std::vector<SourcePart>& parts() const { return parts_; }
  std::unique_ptr<WorkerState> make_worker() const override;
  Sample load(int64_t step, int64_t index, WorkerState& worker) const override;

  // The window that load() would use, without its pictures; and a table, through the cache.
  Draw draw(int64_t step, int64_t index) const;
  std::shared_ptr<const CachedTable> table(int64_t part, int64_t position) const;

 private:
  std::vector<SourcePart> parts_;
  SourceOptions options_;
  std::unique_ptr<SampleDrawer> drawer_;
  mutable TableCache cache_;
};

}  // namespace wam::data
