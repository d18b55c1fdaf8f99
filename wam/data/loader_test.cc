#include "wam/data/loader.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "wam/data/dataset_source.h"
#include "wam/data/fake_dataset.h"

namespace wam::data {
namespace {

// Everything of a batch as bytes.
std::string bytes_of(const Batch& batch) {
  std::string bytes = std::to_string(batch.step) + "/" + std::to_string(batch.first_index) + ":";
  for (const HostTensor* part : {&batch.video, &batch.action, &batch.action_mask, &batch.state,
                                 &batch.has_real_action, &batch.video_mask}) {
    bytes += part->type().to_string();
    bytes.append(static_cast<const char*>(part->data()), static_cast<size_t>(part->size_bytes()));
  }
  for (const std::string& prompt : batch.prompts) bytes += prompt + "|";
  for (const auto& ids : batch.token_ids) bytes += std::to_string(ids.size());
  for (const SampleId& id : batch.ids) {
    bytes += std::to_string(id.episode_index) + "," + std::to_string(id.first_anchor) + ";";
  }
  return bytes;
}

std::vector<std::string> load(const LoaderOptions& options,
                              const std::shared_ptr<const SampleSource>& source, int num_batches) {
  Loader loader(options, source);
  std::vector<std::string> result;
  for (int i = 0; i < num_batches; ++i) result.push_back(bytes_of(loader.next()));
  return result;
}

std::shared_ptr<const SampleSource> fake_source(int64_t global_batch_size = 4) {
  FakeOptions options{.lengths = {60, 50, 7}, .task_switch_row = 35};
  const auto dataset = std::make_shared<FakeDataset>(options);
  Embodiment e = embodiment_preset("sim_table");
  e.views = {"front", "wrist"};
  e.state = {{.key = "arm"}};
  e.action = {{.key = "arm"}};
  e.picture.view_height = e.picture.view_width = 8;
  const auto builder = std::make_shared<const SampleBuilder>(
      dataset, e, dataset_stats(*dataset, e),
      std::shared_ptr<const Tokenizer>(make_tokenizer({.kind = "bytes"})),
      BuilderOptions{.num_blocks = 2, .state_dim = 6, .action_dim = 4});
  return std::make_shared<DatasetSource>(
      std::vector<SourcePart>{{builder, {0, 1, 2}}},
      SourceOptions{.seed = 3, .global_batch_size = global_batch_size});
}

TEST(Loader, WorkersChangeNoBit) {
  LoaderOptions options{.samples_per_step = 4, .micro_batch_size = 2, .num_workers = 1};
  const auto one = load(options, fake_source(), 12);
  for (int64_t workers : {0, 2, 5}) {
    options.num_workers = workers;
    EXPECT_EQ(load(options, fake_source(), 12), one) << workers;
  }
  options.prefetch_batches = 1;
  EXPECT_EQ(load(options, fake_source(), 12), one);
}

TEST(Loader, ResumeNeedsTheStepAlone) {
  LoaderOptions options{.samples_per_step = 4, .micro_batch_size = 4};
  const auto whole = load(options, fake_source(), 8);
  options.first_step = 5;
  EXPECT_EQ(load(options, fake_source(), 3),
            (std::vector<std::string>(whole.begin() + 5, whole.end())));
}

TEST(Loader, RanksShareTheGlobalBatch) {
  LoaderOptions options{.samples_per_step = 4, .micro_batch_size = 1};
  const auto whole = load(options, fake_source(), 8);
  options.samples_per_step = 2;
  const auto first = load(options, fake_source(), 4);
  options.first_index = 2;
  const auto second = load(options, fake_source(), 4);
  EXPECT_EQ(first, (std::vector<std::string>{whole[0], whole[1], whole[4], whole[5]}));
  EXPECT_EQ(second, (std::vector<std::string>{whole[2], whole[3], whole[6], whole[7]}));
}

TEST(Loader, BatchesSayWhereTheyBelong) {
  Loader loader({.first_step = 7, .first_index = 4, .samples_per_step = 4, .micro_batch_size = 2},
                fake_source(8));
  for (int64_t i = 0; i < 6; ++i) {
    const Batch batch = loader.next();
    EXPECT_EQ(batch.step, 7 + i / 2);
    EXPECT_EQ(batch.first_index, 4 + i % 2 * 2);
    EXPECT_EQ(batch.video.shape(), (Shape{2, 17, 8, 16, 3}));
    EXPECT_EQ(batch.action.shape(), (Shape{2, 16, 4}));
    EXPECT_EQ(batch.state.shape(), (Shape{2, 2, 6}));
    EXPECT_EQ(batch.video_mask.shape(), (Shape{2, 5}));
  }
}

// A source of tiny samples with a hook.
class HookedSource : public SampleSource {
 public:
  std::unique_ptr<WorkerState> make_worker() const override {
    return std::make_unique<WorkerState>();
  }
  Sample load(int64_t step, int64_t index, WorkerState&) const override {
    ++loads;
    if (hook) hook(step, index);
    Sample sample;
    const int64_t size = odd_size_at == step ? 2 : 1;
    for (HostTensor* part :
         {&sample.video, &sample.action, &sample.action_mask, &sample.state, &sample.video_mask}) {
      *part = HostTensor::zeros(DType::kF32, {size});
    }
    sample.prompt = std::to_string(step) + "." + std::to_string(index);
    return sample;
  }
  std::function<void(int64_t, int64_t)> hook;
  int64_t odd_size_at = -1;
  mutable std::atomic<int64_t> loads = 0;
};

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(Loader, ErrorsComeInTheirPlace) {
  for (int64_t workers : {0, 1, 4}) {
    const auto source = std::make_shared<HookedSource>();
    source->hook = [](int64_t step, int64_t index) {
      if (step == 2 && index >= 1)
        throw DataError({.where = "file", .what = "broken " + std::to_string(index)});
    };
    Loader loader({.samples_per_step = 3, .micro_batch_size = 3, .num_workers = workers}, source);
    EXPECT_EQ(loader.next().prompts, (std::vector<std::string>{"0.0", "0.1", "0.2"}));
    EXPECT_EQ(loader.next().step, 1);
    const std::string error = error_of([&] { loader.next(); });
    EXPECT_EQ(error, "[step 2, sample 1: file] broken 1.") << workers;
    EXPECT_EQ(error_of([&] { loader.next(); }), error);
  }
}

TEST(Loader, ErrorsOfOtherKindsComeThrough) {
  const auto source = std::make_shared<HookedSource>();
  source->hook = [](int64_t, int64_t) { throw std::bad_alloc(); };
  Loader loader({}, source);
  EXPECT_THROW(loader.next(), std::bad_alloc);
}

TEST(Loader, SamplesOfDifferentShapesAreRefused) {
  const auto source = std::make_shared<HookedSource>();
  source->hook = [&source = *source](int64_t step, int64_t index) {
    source.odd_size_at = step == 1 && index == 1 ? 1 : -1;
  };
  Loader loader({.samples_per_step = 2, .micro_batch_size = 2, .num_workers = 0}, source);
  loader.next();
  EXPECT_NE(error_of([&] { loader.next(); }).find("another shape"), std::string::npos);
}

TEST(Loader, RunsAheadNoFurtherThanAllowed) {
  const auto source = std::make_shared<HookedSource>();
  Loader loader(
      {.samples_per_step = 2, .micro_batch_size = 2, .num_workers = 3, .prefetch_batches = 4},
      source);
  for (int i = 1; i <= 3; ++i) {
    loader.next();
    // Idle workers catch up; they must stop at the ring's end.
    for (int wait = 0; wait < 200 && source->loads < 2 * (i + 4); ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(source->loads, 2 * (i + 4));
  }
}

TEST(Loader, StopsWithoutBeingRead) {
  const auto source = std::make_shared<HookedSource>();
  { Loader loader({.num_workers = 4, .prefetch_batches = 2}, source); }
  EXPECT_LE(source->loads, 2);
}

TEST(Loader, CountsWaiting) {
  const auto source = std::make_shared<HookedSource>();
  source->hook = [](int64_t, int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  Loader loader({.num_workers = 0}, source);
  loader.next();
  EXPECT_GE(loader.wait_seconds(), 0.005);
}

TEST(Loader, OptionsThatDoNotFit) {
  const auto source = std::make_shared<HookedSource>();
  for (const LoaderOptions& options :
       {LoaderOptions{.samples_per_step = 3, .micro_batch_size = 2},
        LoaderOptions{.micro_batch_size = 0}, LoaderOptions{.num_workers = -1},
        LoaderOptions{.prefetch_batches = 0}, LoaderOptions{.first_step = -1}}) {
    EXPECT_THROW(Loader(options, source), ConfigError);
  }
}

TEST(TableCache, KeepsWithinItsBytes) {
  TableCache cache(3 * 80);
  int reads = 0;
  const auto get = [&](int64_t position) {
    return cache.get({0, position}, [&] {
      ++reads;
      auto table = std::make_shared<CachedTable>();
      table->table.numeric["x"] = HostTensor::zeros(DType::kF64, {10, 1});
      return std::shared_ptr<const CachedTable>(table);
    });
  };
  for (int64_t position : {0, 1, 2, 0, 3, 0, 1}) get(position);
  EXPECT_EQ(reads, 5);  // 1 was the oldest when 3 came
  EXPECT_EQ(cache.bytes(), 240);
}

TEST(DatasetSource, TablesAreReadOncePerEpisode) {
  FakeOptions options{.lengths = {60, 50}};
  const auto dataset = std::make_shared<FakeDataset>(options);
  Embodiment e = embodiment_preset("sim_table");
  e.views = {"front", "wrist"};
  e.state = e.action = {{.key = "arm"}};
  const auto builder = std::make_shared<const SampleBuilder>(
      dataset, e, dataset_stats(*dataset, e),
      std::shared_ptr<const Tokenizer>(make_tokenizer({.kind = "bytes"})),
      BuilderOptions{.num_blocks = 2, .state_dim = 6, .action_dim = 4});
  const DatasetSource source({{builder, {0, 1}}}, {.seed = 3, .global_batch_size = 4});
  const auto worker = source.make_worker();
  for (int64_t step = 0; step < 5; ++step) {
    for (int64_t i = 0; i < 4; ++i) source.load(step, i, *worker);
  }
  EXPECT_EQ(dataset->tables_read, 2);
}

TEST(DatasetSource, UnlikePartsAreRefused) {
  const auto dataset = std::make_shared<FakeDataset>();
  const auto make = [&](int64_t view_height) {
    Embodiment e = embodiment_preset("sim_table");
    e.views = {"front", "wrist"};
    e.state = e.action = {{.key = "arm"}};
    e.picture.view_height = view_height;
    return std::make_shared<const SampleBuilder>(
        dataset, e, dataset_stats(*dataset, e),
        std::shared_ptr<const Tokenizer>(make_tokenizer({.kind = "bytes"})),
        BuilderOptions{.num_blocks = 2, .state_dim = 6, .action_dim = 4});
  };
  EXPECT_THROW(DatasetSource({{make(8), {0}}, {make(10), {0}}}, {}), ConfigError);
  EXPECT_NO_THROW(DatasetSource({{make(8), {0}, 2}, {make(8), {1}, 1}}, {}));
}

}  // namespace
}  // namespace wam::data
