// Datasets of LeRobot v3.0: files of several episodes, read by key and by integer arithmetic.
#include "wam/data/lerobot_v3.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "wam/base/files.h"
#include "wam/base/hash.h"
#include "wam/data/coded_error.h"
#include "wam/data/lerobot_testing.h"
#include "wam/data/parquet_reader.h"
#include "wam/data/repack.h"
#include "wam/data/video_testing.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// "code: message" of the error that `function` throws.
std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const DataError& error) {
    return code_of(error, "none") + ": " + error.what();
  }
  return "(no error)";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

void expect_equal_episodes(const Dataset& a, const Dataset& b,
                           const std::vector<std::string>& cameras) {
  const auto a_reader = a.make_frame_reader(), b_reader = b.make_frame_reader();
  ASSERT_EQ(a.episodes().size(), b.episodes().size());
  for (size_t e = 0; e < a.episodes().size(); ++e) {
    const Episode& episode = a.episodes()[e];
    ASSERT_EQ(episode.index, b.episodes()[e].index);
    ASSERT_EQ(episode.length, b.episodes()[e].length);
    EXPECT_EQ(episode.tasks, b.episodes()[e].tasks);
    const EpisodeTable x = a.read_table(episode), y = b.read_table(b.episodes()[e]);
    ASSERT_EQ(x.numeric.size(), y.numeric.size());
    for (const auto& [name, values] : x.numeric) {
      EXPECT_TRUE(std::ranges::equal(values.as<double>(), y.numeric.at(name).as<double>())) << name;
    }
    EXPECT_EQ(x.text, y.text);
    std::vector<int64_t> rows(static_cast<size_t>(episode.length));
    std::iota(rows.rbegin(), rows.rend(), 0);
    for (const std::string& camera : cameras) {
      const HostTensor p = a_reader->read(episode, camera, rows);
      const HostTensor q = b_reader->read(b.episodes()[e], camera, rows);
      EXPECT_TRUE(std::ranges::equal(p.as<uint8_t>(), q.as<uint8_t>())) << camera;
    }
  }
}

class LerobotV3Test : public ::testing::Test {
 protected:
  void make(TestDatasetOptions options = {}) {
    options.version = "v3.0";
    options_ = options;
    write_test_dataset(root_, options_);
  }
  void edit_meta(const std::function<void(std::vector<ParquetColumnData>&)>& edit) {
    edit_parquet(test_v3_episodes_path(root_), edit);
  }
  std::string open_error() {
    return error_of([&] { open_dataset(root_); });
  }
  TempDir temp_;
  fs::path root_ = temp_ / "set";
  TestDatasetOptions options_;
};

TEST_F(LerobotV3Test, HoldsWhatTheV21SetHolds) {
  make({.lengths = {12, 9, 15, 7, 11}});
  options_.version = "v2.1";
  write_test_dataset(temp_ / "v21", options_);
  EXPECT_TRUE(fs::exists(root_ / "data/chunk-000/file-002.parquet"));
  EXPECT_TRUE(fs::exists(root_ / "videos/observation.images.top/chunk-000/file-002.mp4"));
  const auto v21 = open_dataset(temp_ / "v21"), v30 = open_dataset(root_);
  EXPECT_EQ(v30->version(), "v3.0");
  EXPECT_EQ(v30->tasks(), v21->tasks());
  EXPECT_EQ(v30->stats(), v21->stats());
  EXPECT_EQ(v30->modality().video, v21->modality().video);
  expect_equal_episodes(*v21, *v30, options_.cameras);
}

TEST_F(LerobotV3Test, PicturesInParquet) {
  make({.lengths = {5, 6, 4}, .images_in_parquet = true, .episodes_per_file = 3});
  options_.version = "v2.0";
  write_test_dataset(temp_ / "v20", options_);
  const auto v20 = open_dataset(temp_ / "v20"), v30 = open_dataset(root_);
  expect_equal_episodes(*v20, *v30, options_.cameras);
}

TEST_F(LerobotV3Test, EpisodesAreFoundByKeyInAnyOrder) {
  make({.lengths = {12, 9, 15, 7}, .episodes_per_file = 4});
  const auto before = open_dataset(root_);
  const auto reader = before->make_frame_reader();
  const auto hash_of = [](FrameReader& reader, const Episode& episode) {
    const HostTensor frames =
        reader.read(episode, "observation.images.wrist", std::array<int64_t, 2>{6, 0});
    return hash64(std::as_bytes(frames.as<uint8_t>()));
  };
  std::vector<uint64_t> expected;
  for (const Episode& episode : before->episodes()) expected.push_back(hash_of(*reader, episode));
  edit_meta([](auto& columns) {
    for (ParquetColumnData& column : columns) {
      if (auto* numbers = std::get_if<HostTensor>(&column.values)) {
        const size_t row = static_cast<size_t>(numbers->size_bytes()) / 4;
        const std::span bytes(static_cast<std::byte*>(numbers->data()),
                              static_cast<size_t>(numbers->size_bytes()));
        std::vector<std::byte> copy(bytes.begin(), bytes.end());
        for (size_t i = 0; i < 4; ++i) {
          std::copy_n(copy.begin() + static_cast<int64_t>(i * row), row,
                      bytes.begin() + static_cast<int64_t>((i + 2) % 4 * row));
        }
      } else {
        auto& lists = std::get<ParquetTextList>(column.values);
        std::rotate(lists.begin(), lists.begin() + 2, lists.end());
      }
    }
  });
  const auto after = open_dataset(root_);
  const auto after_reader = after->make_frame_reader();
  for (size_t i = 0; i < 4; ++i) {
    const Episode& episode = after->episodes()[i];
    EXPECT_EQ(episode.index, static_cast<int64_t>(i));
    EXPECT_EQ(episode.tasks, before->episodes()[i].tasks);
    EXPECT_EQ(hash_of(*after_reader, episode), expected[i]);
    EXPECT_EQ(after->read_table(episode).numeric.at("episode_index").as<double>()[0],
              static_cast<double>(i));
  }
}

TEST_F(LerobotV3Test, DiscardedEpisodesKeepTheirFrames) {
  make({.lengths = {12, 9, 15}, .episodes_per_file = 3});
  const auto whole = open_dataset(root_);
  edit_json(root_ / "meta/info.json", [](json& info) { info["discarded_episode_indices"] = {1}; });
  const auto part = open_dataset(root_);
  ASSERT_EQ(part->episodes().size(), 2u);
  const auto a = whole->make_frame_reader(), b = part->make_frame_reader();
  const std::array<int64_t, 1> rows = {14};
  const HostTensor p = a->read(whole->episodes()[2], options_.cameras[0], rows);
  const HostTensor q = b->read(part->episodes()[1], options_.cameras[0], rows);
  EXPECT_TRUE(std::ranges::equal(p.as<uint8_t>(), q.as<uint8_t>()));
}

TEST_F(LerobotV3Test, EpisodeStatisticsAreSummed) {
  make();
  const auto expected = open_dataset(root_)->stats();
  fs::remove(root_ / "meta/stats.json");
  const auto stats = open_dataset(root_)->stats();
  for (const char* column : {"observation.state", "action"}) {
    for (const char* name : {"min", "max"}) {
      EXPECT_EQ(stats.at(column).at(name), expected.at(column).at(name));
    }
    for (const char* name : {"mean", "std"}) {
      const auto &got = stats.at(column).at(name), &want = expected.at(column).at(name);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9);
    }
  }
}

// The offset of frames is the sum of lengths: a timestamp that is off by less than half a frame is
// recorders' rounding, by more it is another episode's.
TEST_F(LerobotV3Test, FromTimestampIsCheckedAndNotUsed) {
  make({.lengths = {12, 9, 15}, .episodes_per_file = 3});
  const auto before = open_dataset(root_);
  const auto move = [&](double seconds) {
    edit_meta([&](auto& columns) {
      find_numbers(columns, "videos/observation.images.top/from_timestamp")
          .template as<double>()[2] += seconds;
    });
  };
  move(0.04);  // of 0.1 s
  const auto after = open_dataset(root_);
  const std::array<int64_t, 1> rows = {0};
  const auto a = before->make_frame_reader(), b = after->make_frame_reader();
  const HostTensor p = a->read(before->episodes()[2], options_.cameras[0], rows);
  const HostTensor q = b->read(after->episodes()[2], options_.cameras[0], rows);
  EXPECT_TRUE(std::ranges::equal(p.as<uint8_t>(), q.as<uint8_t>()));
  move(0.02);
  expect_contains(open_error(), "video-offset: ");
  expect_contains(open_error(), "episode 2, camera 'observation.images.top'");
  expect_contains(open_error(), "expected frame 21");
}

TEST_F(LerobotV3Test, OffsetsThatDoNotAddUp) {
  make({.lengths = {12, 9, 15}, .episodes_per_file = 3});
  edit_meta([](auto& columns) {
    find_numbers(columns, "dataset_to_index").template as<int64_t>()[1] += 1;
  });
  expect_contains(open_error(), "table-offset: ");
  expect_contains(open_error(), "episode 1");
  edit_meta([](auto& columns) {
    find_numbers(columns, "dataset_to_index").template as<int64_t>()[1] -= 1;
    find_numbers(columns, "dataset_from_index").template as<int64_t>()[2] += 3;
    find_numbers(columns, "dataset_to_index").template as<int64_t>()[2] += 3;
  });
  expect_contains(open_error(), "earlier episodes end, got 24 rows, expected 21");
}

TEST_F(LerobotV3Test, StaleFileIndices) {
  make({.lengths = {12, 12, 12, 12}});
  edit_meta([](auto& columns) {
    auto files = find_numbers(columns, "data/file_index").template as<int64_t>();
    std::swap(files[0], files[2]);
    std::swap(files[1], files[3]);
  });
  const auto dataset = open_dataset(root_);
  const std::string error = error_of([&] { dataset->read_table(dataset->episodes()[0]); });
  expect_contains(error, "episode-index: ");
  expect_contains(error, "got 2.000000, expected 0");
}

TEST_F(LerobotV3Test, BadEpisodeRows) {
  make();
  const auto refused = [&](const char* column, double value, const std::string& text) {
    const fs::path path = test_v3_episodes_path(root_);
    const std::string good = read_text_file(path);
    edit_meta([&](auto& columns) {
      HostTensor& numbers = find_numbers(columns, column);
      numbers = numbers.to(DType::kF64);
      numbers.as<double>()[1] = value;
    });
    expect_contains(open_error(), text);
    write_text(path, good);
  };
  refused("episode_index", -1, "row 1, column 'episode_index'");
  refused("episode_index", 0, "episode-duplicate: ");
  refused("length", 0, "length out of bounds");
  refused("length", 1e300, "row 1, column 'length'");
  refused("length", 2.5, "a whole number");
  refused("data/file_index", NAN, "row 1, column 'data/file_index'");
  refused("data/chunk_index", 3e9, "column 'data/chunk_index'");
  refused("dataset_from_index", INFINITY, "column 'dataset_from_index'");
  refused("videos/observation.images.top/from_timestamp", NAN, "video-offset: ");
  refused("videos/observation.images.top/from_timestamp", INFINITY, "video-offset: ");
  fs::remove_all(root_ / "meta/episodes");
  expect_contains(open_error(), "there is no list of episodes");
}

TEST_F(LerobotV3Test, MissingColumns) {
  make();
  const auto drop = [&](const std::string& prefix) {
    edit_meta([&](auto& columns) {
      std::erase_if(columns, [&](const auto& c) { return c.name.starts_with(prefix); });
    });
  };
  drop("videos/observation.images.wrist/");
  {
    const auto dataset = open_dataset(root_);
    const std::array<int64_t, 1> rows = {0};
    const auto reader = dataset->make_frame_reader();
    reader->read(dataset->episodes()[0], "observation.images.top", rows);
    expect_contains(
        error_of([&] { reader->read(dataset->episodes()[0], "observation.images.wrist", rows); }),
        "does not say where a camera's videos are");
  }
  drop("length");
  expect_contains(open_error(), "column 'length' is missing");
}

TEST_F(LerobotV3Test, VideoCutShort) {
  make({.lengths = {12, 9}, .cameras = {"observation.images.top"}});
  const fs::path video = root_ / "videos/observation.images.top/chunk-000/file-000.mp4";
  write_test_video(video, 64, 48, 20, 10, {});
  const auto dataset = open_dataset(root_);
  const auto reader = dataset->make_frame_reader();
  const std::array<int64_t, 1> rows = {0};
  expect_contains(
      error_of([&] { reader->read(dataset->episodes()[0], options_.cameras[0], rows); }),
      "fewer frames than its episodes have rows, got 20, expected 21");
}

TEST_F(LerobotV3Test, Gr1RepackedGivesItsFrames) {
  if (real_data_folder().empty()) GTEST_SKIP() << "WAM_DATA_DIR names no folder";
  const fs::path gr1 = real_data_folder() / "gr1_picknplace_v20";
  if (!fs::exists(gr1)) GTEST_SKIP() << gr1 << " is absent";
  repack_as_v3(gr1, root_, {.episodes_per_file = 3});
  const auto v20 = open_dataset(gr1), v30 = open_dataset(root_);
  EXPECT_EQ(v30->episodes().size(), 5u);
  EXPECT_EQ(v30->stats(), v20->stats());
  std::vector<std::string> cameras;
  for (const auto& [key, column] : v20->modality().video) cameras.push_back(column);
  expect_equal_episodes(*v20, *v30, cameras);
}

}  // namespace
}  // namespace wam::data
