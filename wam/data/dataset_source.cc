#include "wam/data/dataset_source.h"

#include "wam/base/check.h"
#include "wam/base/error.h"

namespace wam::data {
namespace {

class Readers : public WorkerState {
 public:
  explicit Readers(size_t num_parts) : readers_(num_parts) {}
  FrameReader& of(size_t part, const Dataset& dataset) {
    if (readers_[part] == nullptr) readers_[part] = dataset.make_frame_reader();
    return *readers_[part];
  }

 private:
  std::vector<std::unique_ptr<FrameReader>> readers_;
};

void check_equal(const char* what, int64_t first, int64_t other, const SampleBuilder& builder) {
  if (first == other) return;
  throw ConfigError({.where = "dataset " + builder.dataset().root().string(),
                     .what = std::string("another ") + what + " than the first dataset",
                     .got = std::to_string(other),
                     .expected = std::to_string(first),
                     .remedy = "All datasets of a run share blocks, horizon and picture size."});
}

void check_alike(const SampleBuilder& a, const SampleBuilder& b) {
  const Embodiment &x = a.embodiment(), &y = b.embodiment();
  check_equal("number of blocks", a.options().num_blocks, b.options().num_blocks, b);
  check_equal("action_horizon", x.action_horizon, y.action_horizon, b);
  check_equal("tiled height", x.tiled_height(), y.tiled_height(), b);
  check_equal("tiled width", x.tiled_width(), y.tiled_width(), b);
  check_equal("state_dim", a.options().state_dim, b.options().state_dim, b);
  check_equal("action_dim", a.options().action_dim, b.options().action_dim, b);
}

DrawSource draw_source(const SourcePart& part, SamplingMode mode) {
  const SampleBuilder& builder = *part.builder;
  DrawSource source{
      WindowSampler(window_rules(builder.embodiment(), mode, builder.options().num_blocks)),
      {},
      part.episode_positions,
      part.weight,
      part.name.empty() ? builder.dataset().root().string() : part.name,
      part.dropped};
  source.episodes.reserve(builder.dataset().episodes().size());
  for (const Episode& episode : builder.dataset().episodes()) {
    source.episodes.push_back({episode.index, episode.length});
  }
  return source;
}

}  // namespace

DatasetSource::DatasetSource(std::vector<SourcePart> parts, SourceOptions options)
    : parts_(std::move(parts)), options_(options), cache_(options.table_cache_bytes) {
  WAM_CHECK(!parts_.empty());
  std::vector<DrawSource> sources;
  for (const SourcePart& part : parts_) {
    check_alike(*parts_[0].builder, *part.builder);
    sources.push_back(draw_source(part, options_.mode));
  }
  drawer_ =
      std::make_unique<SampleDrawer>(std::move(sources), options_.seed, options_.global_batch_size);
}

std::unique_ptr<WorkerState> DatasetSource::make_worker() const {
  return std::make_unique<Readers>(parts_.size());
}

std::shared_ptr<const CachedTable> DatasetSource::table(int64_t part, int64_t position) const {
  const SampleBuilder& builder = *parts_.at(static_cast<size_t>(part)).builder;
  const Episode& episode = builder.dataset().episodes().at(static_cast<size_t>(position));
  return cache_.get({part, position}, [&] {
    auto cached = std::make_shared<CachedTable>();
    cached->table = builder.dataset().read_columns(episode, builder.needed_columns());
    if (cached->table.num_rows != episode.length) {
      throw DataError({.where = builder.dataset().root().string() + ", episode " +
                                std::to_string(episode.index),
                       .what = "table and meta disagree on the episode's length",
                       .got = std::to_string(cached->table.num_rows) + " rows",
                       .expected = std::to_string(episode.length),
                       .remedy = "Run `wam validate` on the dataset."});
    }
    cached->labels = std::make_shared<const std::vector<int64_t>>(
        builder.language_labels(episode, cached->table));
    return std::shared_ptr<const CachedTable>(std::move(cached));
  });
}

Draw DatasetSource::draw(int64_t step, int64_t index) const {
  return drawer_->draw(step, index, [this](int64_t part, int64_t position) {
    return table(part, position)->labels;
  });
}

Sample DatasetSource::load(int64_t step, int64_t index, WorkerState& worker) const {
  const Draw drawn = draw(step, index);
  const auto part = static_cast<size_t>(drawn.window.id.dataset);
  const SampleBuilder& builder = *parts_[part].builder;
  const Episode& episode = builder.dataset().episodes().at(static_cast<size_t>(drawn.position));
  FrameReader& reader = static_cast<Readers&>(worker).of(part, builder.dataset());
  const auto cached = table(drawn.window.id.dataset, drawn.position);
  return builder.build(episode, cached->table, reader, drawn.window,
                       {options_.seed, static_cast<uint64_t>(step), static_cast<uint64_t>(index)});
}

}  // namespace wam::data
