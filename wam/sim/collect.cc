#include "wam/sim/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/philox.h"
#include "wam/data/parquet_writer.h"
#include "wam/data/video_writer.h"
#include "wam/sim/collection_folder.h"
#include "wam/sim/dataset_meta.h"
#include "wam/sim/recorder.h"

namespace wam::sim {
namespace {

namespace fs = std::filesystem;

void require(bool holds, const char* field, const std::string& got, const char* expected) {
  if (holds) return;
  throw ConfigError({.where = std::string("sim.") + field,
                     .what = "value out of range",
                     .got = got,
                     .expected = expected,
                     .remedy = "Choose a value in the range."});
}

// Absolute, and without a slash at the end: it gets a suffix while it is written.
fs::path clean_path(const fs::path& path) {
  if (path.empty()) return path;
  const fs::path clean = fs::absolute(path).lexically_normal();
  return clean.filename().empty() ? clean.parent_path() : clean;
}

HostTensor float_tensor(std::span<const double> values, Shape shape) {
  HostTensor tensor(DType::kF32, shape);
  std::ranges::transform(values, tensor.as<float>().begin(),
                         [](double value) { return static_cast<float>(value); });
  return tensor;
}

HostTensor integer_tensor(std::span<const double> values) {
  HostTensor tensor(DType::kI64, {static_cast<int64_t>(values.size())});
  std::ranges::transform(values, tensor.as<int64_t>().begin(),
                         [](double value) { return static_cast<int64_t>(value); });
  return tensor;
}

// Writes the episodes of one collection one after the other.
class Collection {
 public:
  Collection(const CollectOptions& options, fs::path root)
      : options_(options), root_(std::move(root)), world_(options.world), expert_(options.expert) {}

  void add_episode();
  CollectReport finish();
  int64_t num_frames() const { return num_frames_; }

 private:
  EpisodeRecord record(int64_t episode);
  Columns make_columns(const EpisodeRecord& record, int64_t episode);
  void write_table(const Columns& columns, int64_t episode);
  int64_t task_index(const std::string& task);
  fs::path new_file(const fs::path& name);

  const CollectOptions& options_;
  fs::path root_;
  World world_;
  ExpertPolicy expert_;
  DatasetMeta meta_;
  Columns columns_;
  std::vector<fs::path> files_;
  int64_t num_frames_ = 0;
};

// The full path of a file of the dataset, its folder made.
fs::path Collection::new_file(const fs::path& name) {
  files_.push_back(name);
  const fs::path path = root_ / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) throw_io_error(path.parent_path(), "cannot make the folder", error.value());
  return path;
}

EpisodeRecord Collection::record(int64_t episode) {
  const data::VideoWriterOptions video{
      .codec = options_.codec, .gop = options_.gop, .crf = options_.crf};
  const int size = options_.world.view_size;
  std::array<std::unique_ptr<data::VideoWriter>, kNumCameras> writers;
  for (int camera = 0; camera < kNumCameras; ++camera) {
    writers[camera] = std::make_unique<data::VideoWriter>(new_file(video_path(episode, camera)),
                                                          size, size, options_.world.fps, video);
  }
  meta_.codec = writers[0]->codec();
  meta_.pixel_format = writers[0]->pixel_format();
  EpisodeRecord record = record_episode(
      world_, expert_, episode_seed(options_.seed, episode),
      [&](int camera, std::span<const uint8_t> picture) { writers[camera]->write(picture); });
  for (const auto& writer : writers) writer->finish();
  return record;
}

// Tasks are numbered in the order in which they first appear.
int64_t Collection::task_index(const std::string& task) {
  const auto found = std::ranges::find(meta_.tasks, task);
  const int64_t index = found - meta_.tasks.begin();
  if (found == meta_.tasks.end()) meta_.tasks.push_back(task);
  return index;
}

Columns Collection::make_columns(const EpisodeRecord& record, int64_t episode) {
  Columns columns;
  columns.states.assign(record.states.begin(), record.states.end());
  columns.actions.assign(record.actions.begin(), record.actions.end());
  const auto task = static_cast<double>(task_index(record.instruction));
  for (int64_t row = 0; row < record.length; ++row) {
    // Statistics are of the values as stored: in float32.
    columns.timestamp.push_back(static_cast<float>(static_cast<double>(row) / options_.world.fps));
    columns.frame_index.push_back(static_cast<double>(row));
    columns.episode_index.push_back(static_cast<double>(episode));
    columns.index.push_back(static_cast<double>(num_frames_ + row));
    columns.task_index.push_back(task);
  }
  return columns;
}

void Collection::write_table(const Columns& columns, int64_t episode) {
  const auto rows = static_cast<int64_t>(columns.timestamp.size());
  data::write_parquet(new_file(table_path(episode)),
                      {{kStateColumn, float_tensor(columns.states, {rows, kStateSize})},
                       {kActionColumn, float_tensor(columns.actions, {rows, kActionSize})},
                       {"timestamp", float_tensor(columns.timestamp, {rows})},
                       {"frame_index", integer_tensor(columns.frame_index)},
                       {"episode_index", integer_tensor(columns.episode_index)},
                       {"index", integer_tensor(columns.index)},
                       {"task_index", integer_tensor(columns.task_index)}},
                      {.metadata = {{"huggingface", table_features()}}});
}

void Collection::add_episode() {
  const auto episode = static_cast<int64_t>(meta_.episodes.size());
  const EpisodeRecord recorded = record(episode);
  const Columns columns = make_columns(recorded, episode);
  write_table(columns, episode);
  columns_.append(columns);
  num_frames_ += recorded.length;
  meta_.episodes.push_back({.index = episode,
                            .length = recorded.length,
                            .task = recorded.instruction,
                            .columns = compute_stats(columns),
                            .pictures = recorded.pictures});
}

CollectReport Collection::finish() {
  meta_.columns = compute_stats(columns_);
  fs::create_directories(root_ / "meta");
  write_meta(root_, options_, meta_);
  const CollectReport report{.episodes = static_cast<int64_t>(meta_.episodes.size()),
                             .frames = num_frames_,
                             .tasks = static_cast<int64_t>(meta_.tasks.size()),
                             .codec = meta_.codec};
  write_collection_record(root_, options_, report, files_);
  return report;
}

}  // namespace

void validate(const CollectOptions& options) {
  validate(options.world);
  validate(options.expert, options.world);
  require(!clean_path(options.path).filename().empty(), "path", "'" + options.path.string() + "'",
          "the name of a folder");
  require(options.episodes >= 1 && options.episodes <= 1000000, "episodes",
          fmt::format("{}", options.episodes), "1 to 1000000");
  require(options.gop >= 1 && options.gop <= 600, "gop", fmt::format("{}", options.gop),
          "1 to 600");
  require(options.crf >= 0 && options.crf <= 51, "crf", fmt::format("{}", options.crf), "0 to 51");
}

uint64_t episode_seed(uint64_t seed, int64_t episode) {
  return Random(seed, RandomUse::kSim, 2, static_cast<uint64_t>(episode)).next_u64();
}

CollectReport collect(const CollectOptions& given,
                      const std::function<void(const CollectProgress&)>& progress) {
  validate(given);
  CollectOptions options = given;
  options.path = clean_path(given.path);
  if (const auto found = find_collection(options)) return *found;
  PartialFolder folder(options.path);
  Collection collection(options, folder.path());
  for (int64_t episode = 0; episode < options.episodes; ++episode) {
    collection.add_episode();
    if (progress) progress({episode + 1, options.episodes, collection.num_frames()});
  }
  const CollectReport report = collection.finish();
  folder.publish();
  return report;
}

}  // namespace wam::sim
