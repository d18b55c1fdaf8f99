// What collect() writes, read back by the data pipeline.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <numeric>

#include "wam/base/files.h"
#include "wam/data/dataset.h"
#include "wam/data/embodiment.h"
#include "wam/data/norm_stats.h"
#include "wam/data/stats.h"
#include "wam/sim/collect.h"

namespace wam::sim {
namespace {

// One collection for all tests: 5 episodes at the size the demonstration uses.
class SimDataset : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    options_ = {.path = *folder_ / "set", .episodes = 5, .seed = 3, .world = {.view_size = 32}};
    collect(options_);
  }
  static void TearDownTestSuite() { delete folder_; }

  static TempDir* folder_;
  static CollectOptions options_;
  const std::unique_ptr<data::Dataset> dataset_ = data::open_dataset(options_.path);
};
TempDir* SimDataset::folder_ = nullptr;
CollectOptions SimDataset::options_;

TEST_F(SimDataset, MetaIsUnderstood) {
  EXPECT_EQ(dataset_->version(), "v2.1");
  EXPECT_EQ(dataset_->fps(), 10);
  EXPECT_EQ(dataset_->robot_type(), "sim_table");
  ASSERT_EQ(dataset_->episodes().size(), 5u);
  EXPECT_EQ(dataset_->modality().video.at("gripper"), "observation.images.gripper");
  EXPECT_EQ(dataset_->stats().at("action").at("q99").size(), size_t{kActionSize});
}

// Acting out the recorded actions gives the recorded states, instructions and, up to the video's
// losses, pictures.
TEST_F(SimDataset, ReplayingTheActionsGivesStatesAndPictures) {
  World world(options_.world);
  const auto reader = dataset_->make_frame_reader();
  for (const data::Episode& episode : dataset_->episodes()) {
    const data::EpisodeTable table = dataset_->read_table(episode);
    world.reset(episode_seed(options_.seed, episode.index));
    EXPECT_EQ(episode.tasks, std::vector<std::string>{world.instruction()});
    const auto states = table.numeric.at("observation.state").as<double>();
    const auto actions = table.numeric.at("action").as<double>();
    std::vector<int64_t> rows(table.num_rows);
    std::iota(rows.begin(), rows.end(), 0);
    const HostTensor overview = reader->read(episode, "observation.images.overview", rows);
    const HostTensor gripper = reader->read(episode, "observation.images.gripper", rows);
    for (const int64_t row : rows) {
      // Each executed action was rounded to float32 once: its error adds up over the rows.
      const double bound = static_cast<double>(row + 1) * 0x1p-24;
      for (int d = 0; d < kStateSize; ++d) {
        EXPECT_NEAR(states[row * kStateSize + d], world.state()[d], bound);
      }
      for (const auto& [decoded, rendered] :
           {std::pair{overview, world.render_overview()}, {gripper, world.render_gripper()}}) {
        const auto truth = rendered.as<uint8_t>();
        const auto seen = decoded.as<uint8_t>().subspan(row * truth.size(), truth.size());
        double sum = 0;
        for (size_t i = 0; i < truth.size(); ++i) sum += std::abs(int{truth[i]} - int{seen[i]});
        // Mostly colours at half resolution along edges; the table and the blocks are flat.
        EXPECT_LT(sum / static_cast<double>(truth.size()), 8) << "row " << row;
      }
      const double* action = &actions[row * kActionSize];
      world.step({{action[0], action[1]}, action[2]});
    }
    EXPECT_TRUE(world.success());
  }
}

TEST_F(SimDataset, StatisticsAgreeWithThePipelines) {
  const data::NormStats stats =
      data::compute_statistics(*dataset_, data::modality_slices(*dataset_));
  for (const auto& [key, begin] : {std::pair{"arm", 0}, {"gripper", 2}}) {
    for (const auto& [name, values] : stats.action.at(key).values) {
      for (size_t i = 0; i < values.size(); ++i) {
        const double written = dataset_->stats().at("action").at(name)[begin + i];
        // Sums of some 300 values in another order.
        EXPECT_NEAR(written, values[i], 300 * 0x1p-52) << key << " " << name;
      }
    }
  }
}

TEST_F(SimDataset, TheExampleEmbodimentFits) {
  const YAML::Node file =
      YAML::LoadFile(std::string(WAM_SOURCE_DIR) + "/configs/embodiments/sim_table.yaml");
  const data::Embodiment embodiment = data::parse_embodiment(file["embodiment"]);
  EXPECT_EQ(data::to_yaml(embodiment), data::to_yaml(data::embodiment_preset("sim_table")));
  EXPECT_EQ(embodiment.tiled_height(), 32);
  EXPECT_EQ(embodiment.tiled_width(), 64);
  const data::NormStats stats = data::dataset_stats(*dataset_, embodiment);
  EXPECT_EQ(stats.state.at("arm").width + stats.state.at("gripper").width, kStateSize);
  EXPECT_EQ(stats.action.at("arm").width + stats.action.at("gripper").width, kActionSize);
}

}  // namespace
}  // namespace wam::sim
