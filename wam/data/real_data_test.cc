// The whole pipeline on real robot data: WAM_DATA_DIR, skipped where it is absent.
#include <gtest/gtest.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "wam/base/error.h"
#include "wam/data/dataset_source.h"
#include "wam/data/loader.h"
#include "wam/data/prompt.h"
#include "wam/data/split.h"
#include "wam/data/stats.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGr1 = R"(
embodiment_tag: gr1
views: [ego_view]
view_height: 64
view_width: 64
prompt_template: "A robot {i}"
state: [left_arm, left_hand, left_leg, neck, right_arm, right_hand, right_leg, waist]
action: [left_arm, left_hand, right_arm, "right_hand[0:5]"]
relative_action_keys: []
action_horizon: 16
language_keys: [annotation.human.action.task_description]
)";

constexpr const char* kCr5 = R"(
embodiment_tag: cr5
views: [top]
view_height: 48
view_width: 64
prompt_template: "A robot {i}"
state: [observation.state]
action: ["action[0:6]", {key: action, indices: "6", normalization: min_max}]
action_horizon: 8
)";

class RealData : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("WAM_DATA_DIR");
    if (root == nullptr || !fs::exists(fs::path(root) / "gr1_picknplace_v20") ||
        !fs::exists(fs::path(root) / "cr5_v21_av1")) {
      GTEST_SKIP() << "WAM_DATA_DIR has no gr1_picknplace_v20 and cr5_v21_av1";
    }
    root_ = root;
  }
  void TearDown() override {
    if (!joined_.empty()) fs::remove_all(joined_);
  }
  fs::path gr1() const { return root_ / "gr1_picknplace_v20"; }
  // The set with the meta cut to the episodes that are there, joined by links.
  fs::path cr5() {
    joined_ = fs::temp_directory_path() / ("wam_cr5_" + std::to_string(getpid()));
    fs::create_directories(joined_);
    fs::create_directory_symlink(root_ / "derived/trimmed_meta/cr5_v21_av1/meta", joined_ / "meta");
    for (const char* part : {"data", "videos"}) {
      fs::create_directory_symlink(root_ / "cr5_v21_av1" / part, joined_ / part);
    }
    return joined_;
  }
  fs::path root_, joined_;
};

std::shared_ptr<const SampleBuilder> builder_of(const std::shared_ptr<const Dataset>& dataset,
                                                const Embodiment& e, const NormStats& stats) {
  return std::make_shared<const SampleBuilder>(
      dataset, e, stats, std::shared_ptr<const Tokenizer>(make_tokenizer({.kind = "bytes"})),
      BuilderOptions{.num_blocks = 2});
}

std::vector<SourcePart> all_episodes(const std::shared_ptr<const SampleBuilder>& builder) {
  return {{builder, split_episodes(builder->dataset().episodes(), {}).train}};
}

std::vector<Batch> load(const std::shared_ptr<const SampleSource>& source, int64_t workers) {
  Loader loader({.samples_per_step = 2, .micro_batch_size = 2, .num_workers = workers}, source);
  std::vector<Batch> batches;
  for (int i = 0; i < 3; ++i) batches.push_back(loader.next());
  return batches;
}

bool same_bytes(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

void expect_same_with_workers(const std::shared_ptr<const SampleSource>& source) {
  const std::vector<Batch> one = load(source, 1), two = load(source, 2);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(same_bytes(one[i].video, two[i].video));
    EXPECT_TRUE(same_bytes(one[i].action, two[i].action));
    EXPECT_TRUE(same_bytes(one[i].state, two[i].state));
    EXPECT_EQ(one[i].token_ids, two[i].token_ids);
  }
}

// The sample's numbers, un-normalised, are the table's.
void expect_numbers_come_back(const SampleBuilder& builder, const DatasetSource& source) {
  const auto worker = source.make_worker();
  const Sample sample = source.load(0, 1, *worker);
  const Draw draw = source.draw(0, 1);
  const Episode& episode = builder.dataset().episodes()[static_cast<size_t>(draw.position)];
  const EpisodeTable table = builder.dataset().read_table(episode);
  const std::vector<double> want = builder.raw_actions(episode, table, draw.window.action_rows);
  const std::vector<double> state = builder.raw_states(episode, table, draw.window.state_rows);
  const RobotCodec& codec = builder.codec();
  const auto block = static_cast<size_t>(codec.action_horizon() * codec.action_width());
  std::vector<double> got(block);
  codec.decode_actions(sample.action.as<float>().subspan(
                           0, static_cast<size_t>(codec.action_horizon() * codec.action_dim())),
                       std::span(state).subspan(0, static_cast<size_t>(codec.state_width())), got);
  size_t inside = 0;
  for (size_t i = 0; i < block; ++i) {
    const size_t dim = i % static_cast<size_t>(codec.action_width());
    const float encoded =
        sample.action.as<float>()[i / static_cast<size_t>(codec.action_width()) * 32 + dim];
    if (std::abs(encoded) >= 1) continue;  // clamped
    // Six float32 roundings of values below 8.
    EXPECT_NEAR(got[i], want[i], 6 * 8 * std::numeric_limits<float>::epsilon()) << i;
    ++inside;
  }
  EXPECT_GT(inside, block / 3);
}

TEST_F(RealData, Gr1WithItsOwnStatistics) {
  const auto dataset = std::shared_ptr<const Dataset>(open_dataset(gr1()));
  const Embodiment e = parse_embodiment(YAML::Load(kGr1));
  const auto builder = builder_of(dataset, e, dataset_stats(*dataset, e));
  EXPECT_EQ(builder->codec().state_width(), 44);
  EXPECT_EQ(builder->codec().action_width(), 25);
  const auto source = std::make_shared<DatasetSource>(
      all_episodes(builder), SourceOptions{.seed = 1, .global_batch_size = 2});
  EXPECT_EQ(source->report().num_episodes, 5);
  EXPECT_EQ(source->report().num_rows, 2096);
  EXPECT_TRUE(source->report().excluded.empty());
  const auto worker = source->make_worker();
  const Sample sample = source->load(0, 0, *worker);
  EXPECT_EQ(sample.video.shape(), (Shape{17, 64, 64, 3}));
  // The annotation column, not task 1 ("valid").
  EXPECT_EQ(sample.prompt.rfind("A robot pick the ", 0), 0u) << sample.prompt;
  expect_numbers_come_back(*builder, *source);
  expect_same_with_workers(source);
}

TEST_F(RealData, Gr1ActionsAreTooManyUnlessNamed) {
  const auto dataset = std::shared_ptr<const Dataset>(open_dataset(gr1()));
  Embodiment e = parse_embodiment(YAML::Load(kGr1));
  e.action = {{.key = "action"}};
  EXPECT_THROW(builder_of(dataset, e, dataset_stats(*dataset, e)), ConfigError);
}

TEST_F(RealData, Gr1PicturesAreThoseOfTheirRows) {
  const auto dataset = std::shared_ptr<const Dataset>(open_dataset(gr1()));
  const Embodiment e = parse_embodiment(YAML::Load(kGr1));
  const auto builder = builder_of(dataset, e, dataset_stats(*dataset, e));
  const DatasetSource source(all_episodes(builder), {.seed = 1, .global_batch_size = 2});
  const auto worker = source.make_worker();
  const Sample sample = source.load(3, 0, *worker);
  const Draw draw = source.draw(3, 0);
  const Episode& episode = dataset->episodes()[static_cast<size_t>(draw.position)];
  const auto reader = dataset->make_frame_reader();
  // One frame alone, with the sample's own draw, equals its place in the clip.
  const int64_t row = draw.window.frame_rows[9];
  const HostTensor frame = reader->read(episode, "observation.images.ego_view", {&row, 1});
  const HostTensor want = tile_views(e, {&frame, 1}, true, {1, 3, 0});
  const auto got = sample.video.as<uint8_t>().subspan(9 * 64 * 64 * 3, 64 * 64 * 3);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), want.as<uint8_t>().begin()));
}

TEST_F(RealData, Cr5NeedsComputedStatistics) {
  const auto dataset = std::shared_ptr<const Dataset>(open_dataset(cr5()));
  const Embodiment e = parse_embodiment(YAML::Load(kCr5));
  EXPECT_THROW(dataset_stats(*dataset, e), DataError);  // v2.1 keeps no quantiles
  const NormStats stats = compute_statistics(*dataset, embodiment_slices(*dataset, e));
  const auto builder = builder_of(dataset, e, stats);
  const auto source = std::make_shared<DatasetSource>(
      all_episodes(builder), SourceOptions{.seed = 1, .global_batch_size = 2});
  EXPECT_EQ(source->report().num_rows, 1332);
  const auto worker = source->make_worker();
  const Sample sample = source->load(0, 0, *worker);
  EXPECT_EQ(sample.video.shape(), (Shape{17, 48, 64, 3}));
  EXPECT_EQ(sample.prompt, "A robot put the banana on the plate");
  expect_numbers_come_back(*builder, *source);
  expect_same_with_workers(source);
}

TEST_F(RealData, BothInOneRun) {
  const auto a = std::shared_ptr<const Dataset>(open_dataset(gr1()));
  const auto b = std::shared_ptr<const Dataset>(open_dataset(cr5()));
  Embodiment ea = parse_embodiment(YAML::Load(kGr1)), eb = parse_embodiment(YAML::Load(kCr5));
  ea.action_horizon = eb.action_horizon;
  ea.picture.view_height = eb.picture.view_height;
  const auto ba = builder_of(a, ea, dataset_stats(*a, ea));
  const auto bb = builder_of(b, eb, compute_statistics(*b, embodiment_slices(*b, eb)));
  std::vector<SourcePart> parts = all_episodes(ba);
  parts.push_back(all_episodes(bb)[0]);
  parts[0].weight = 3;
  parts[1].weight = 1;
  const DatasetSource source(parts, {.seed = 1, .global_batch_size = 8});
  int from_second = 0;
  for (int64_t i = 0; i < 800; ++i) from_second += source.draw(i / 8, i % 8).window.id.dataset == 1;
  EXPECT_NEAR(from_second, 200, 6 * 12.3);
}

}  // namespace
}  // namespace wam::data
