// One logical dataset in v2.0, v2.1, v3.0 and with its pictures as PNG inside parquet: the samples
// that training draws are equal to the bit.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "wam/base/files.h"
#include "wam/data/dataset_source.h"
#include "wam/data/lerobot_testing.h"
#include "wam/data/repack.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;

Embodiment robot() {
  Embodiment e;
  e.tag = "test";
  e.views = {"top", "wrist"};
  e.picture = {.view_height = 24, .view_width = 32};  // with crop and jitter, as training has them
  e.tiling = Tiling::kSideBySide;
  e.prompt_template = "do {i}";
  e.state = {{.key = "arm", .column = {}, .ranges = {}},
             {.key = "gripper", .column = {}, .ranges = {}}};
  e.action = {{.key = "arm", .column = {}, .ranges = {}, .mode = NormMode::kMeanStd}};
  e.action_horizon = 4;
  e.macro_stride = 8;
  e.video_in_chunk_offsets = {0, 1, 2, 3, 4, 5, 6, 7};
  return e;
}

DatasetSource source_of(const fs::path& root) {
  std::shared_ptr<const Dataset> dataset = open_dataset(root);
  const Embodiment embodiment = robot();
  TokenizerOptions bytes;
  bytes.kind = "bytes";
  auto builder = std::make_shared<const SampleBuilder>(
      dataset, embodiment, dataset_stats(*dataset, embodiment), make_tokenizer(bytes),
      BuilderOptions{.num_blocks = 2, .state_dim = 6, .action_dim = 4});
  std::vector<int64_t> all;
  for (int64_t i = 0; i < std::ssize(dataset->episodes()); ++i) all.push_back(i);
  return DatasetSource({{builder, all}}, {.seed = 5, .global_batch_size = 4});
}

void expect_equal(const HostTensor& a, const HostTensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())), 0) << what;
}

void expect_same_samples(const DatasetSource& a, const DatasetSource& b, const std::string& what) {
  const auto a_worker = a.make_worker(), b_worker = b.make_worker();
  for (int64_t g = 0; g < 12; ++g) {
    const Sample x = a.load(g / 4, g % 4, *a_worker), y = b.load(g / 4, g % 4, *b_worker);
    EXPECT_EQ(x.id.episode_index, y.id.episode_index) << what;
    EXPECT_EQ(x.id.first_anchor, y.id.first_anchor) << what;
    expect_equal(x.video, y.video, what + ": video");
    expect_equal(x.action, y.action, what + ": action");
    expect_equal(x.action_mask, y.action_mask, what + ": action_mask");
    expect_equal(x.state, y.state, what + ": state");
    expect_equal(x.video_mask, y.video_mask, what + ": video_mask");
    EXPECT_EQ(x.prompt, y.prompt) << what;
    EXPECT_EQ(x.token_ids, y.token_ids) << what;
  }
}

TEST(Formats, SamplesOfEveryFormAreEqualToTheBit) {
  const TempDir temp;
  TestDatasetOptions options{.lengths = {30, 41, 25, 33, 28}, .episodes_per_file = 3};
  const auto write = [&](const char* name, const char* version) {
    options.version = version;
    write_test_dataset(temp / name, options);
  };
  write("v20", "v2.0");
  write("v21", "v2.1");
  write("v30", "v3.0");
  repack_with_images(*open_dataset(temp / "v21"), temp / "png");
  repack_as_v3(temp / "png", temp / "png_v30", {.episodes_per_file = 2});
  const DatasetSource reference = source_of(temp / "v20");
  for (const char* name : {"v21", "v30", "png", "png_v30"}) {
    expect_same_samples(reference, source_of(temp / name), name);
  }
}

}  // namespace
}  // namespace wam::data
