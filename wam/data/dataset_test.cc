#include "wam/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/hash.h"
#include "wam/data/lerobot_testing.h"
#include "wam/data/repack.h"
#include "wam/data/video_testing.h"

namespace wam::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const DataError& error) {
    return error.what();
  }
  return "(no error)";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
}

class DatasetTest : public ::testing::Test {
 protected:
  void make(const TestDatasetOptions& options = {}) {
    options_ = options;
    write_test_dataset(root_, options);
  }
  void edit_info(const std::function<void(json&)>& edit) {
    edit_json(root_ / "meta/info.json", edit);
  }
  std::string open_error() {
    return error_of([&] { open_dataset(root_); });
  }
  TempDir temp_;
  fs::path root_ = temp_ / "set";
  TestDatasetOptions options_;
};

TEST_F(DatasetTest, ReadsWhatWasWritten) {
  make();
  const auto dataset = open_dataset(root_);
  EXPECT_EQ(dataset->version(), "v2.1");
  EXPECT_EQ(dataset->fps(), 10);
  ASSERT_EQ(dataset->episodes().size(), 3u);
  EXPECT_EQ(dataset->episodes()[2].length, 15);
  EXPECT_EQ(dataset->episodes()[1].tasks, std::vector<std::string>{"pull"});
  EXPECT_EQ(dataset->tasks().at(1), "pull");
  EXPECT_EQ(dataset->modality().state.size(), 2u);
  EXPECT_EQ(dataset->modality().video.at("wrist"), "observation.images.wrist");
  EXPECT_EQ(dataset->stats().at("action").at("q99").size(), 3u);
  const EpisodeTable table = dataset->read_table(dataset->episodes()[1]);
  EXPECT_EQ(table.num_rows, 9);
  EXPECT_EQ(table.numeric.at("observation.state").shape(), Shape({9, 4}));
  EXPECT_EQ(table.numeric.at("index").as<double>()[8], 12 + 8);
  const EpisodeTable one =
      dataset->read_columns(dataset->episodes()[1], std::array<std::string, 1>{"task_index"});
  EXPECT_EQ(one.numeric.size(), 1u);
}

TEST_F(DatasetTest, FramesAreThoseOfTheEpisodeAndCamera) {
  make();
  const auto dataset = open_dataset(root_);
  const auto reader = dataset->make_frame_reader();
  const Episode& episode = dataset->episodes()[2];
  for (const std::string& camera : options_.cameras) {
    const std::vector<uint64_t> expected =
        hash_all_frames(test_video_path(root_, episode.index, camera));
    const std::vector<int64_t> rows = {14, 0, 7, 7, 3};
    const HostTensor frames = reader->read(episode, camera, rows);
    ASSERT_EQ(frames.shape(), Shape({5, 48, 64, 3}));
    const auto bytes = std::as_bytes(frames.as<uint8_t>());
    const size_t size = bytes.size() / rows.size();
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(hash64(bytes.subspan(i * size, size)), expected[static_cast<size_t>(rows[i])]);
    }
  }
}

TEST_F(DatasetTest, PicturesInParquetComeBackToTheBit) {
  make({.version = "v2.0",
        .cameras = {"image", "wrist_image"},
        .images_in_parquet = true,
        .has_modality = false});
  const auto dataset = open_dataset(root_);
  EXPECT_EQ(dataset->version(), "v2.0");
  EXPECT_EQ(dataset->modality().video.at("wrist_image"), "wrist_image");
  const auto reader = dataset->make_frame_reader();
  const HostTensor frames =
      reader->read(dataset->episodes()[1], "wrist_image", std::array<int64_t, 2>{8, 2});
  const std::vector<uint8_t> expected = test_picture(64, 48, 1100 + 8);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), frames.as<uint8_t>().begin()));
}

TEST_F(DatasetTest, PicturesByPathAreReadFromTheFolder) {
  make({.cameras = {"image"}, .images_in_parquet = true});
  fs::create_directories(root_ / "images");
  edit_table(root_, options_, 0, [&](auto& columns) {
    auto& images = std::get<ParquetImages>(columns.back().values);
    write_text(root_ / "images/a.png", images[3].bytes);
    images[5] = {.has_bytes = false, .path = "images/a.png"};
    images[6] = {.has_bytes = false, .path = "../a.png"};
    images[7] = {.has_bytes = false};
    images[8].bytes.resize(100);
  });
  const auto dataset = open_dataset(root_);
  const auto reader = dataset->make_frame_reader();
  const Episode& episode = dataset->episodes()[0];
  const auto read = [&](int64_t row) { return reader->read(episode, "image", {&row, 1}); };
  const HostTensor a = read(3), b = read(5);
  EXPECT_TRUE(std::equal(a.as<uint8_t>().begin(), a.as<uint8_t>().end(), b.as<uint8_t>().begin()));
  expect_contains(error_of([&] { read(6); }), "leaves the dataset's folder");
  expect_contains(error_of([&] { read(7); }), "neither bytes nor a path");
  expect_contains(error_of([&] { read(8); }), "row 8");
}

TEST_F(DatasetTest, DefaultModalityNamesColumns) {
  make({.has_modality = false});
  const auto dataset = open_dataset(root_);
  ASSERT_EQ(dataset->modality().state.size(), 1u);
  EXPECT_EQ(dataset->modality().state[0].key, "state");
  EXPECT_EQ(dataset->modality().state[0].original_key, "observation.state");
  EXPECT_EQ(dataset->modality().state[0].end, 4);
  EXPECT_EQ(dataset->modality().action[0].key, "action");
  EXPECT_EQ(dataset->modality().video.at("top"), "observation.images.top");
}

TEST_F(DatasetTest, EpisodesAreFoundByKey) {
  make();
  write_text(root_ / "meta/episodes.jsonl",
             "{\"episode_index\": 2, \"tasks\": [\"push\"], \"length\": 15}\n\n"
             "{\"episode_index\": 0, \"length\": 12}\n");
  const auto dataset = open_dataset(root_);
  ASSERT_EQ(dataset->episodes().size(), 2u);
  EXPECT_EQ(dataset->episodes()[1].index, 2);
  const EpisodeTable table = dataset->read_table(dataset->episodes()[1]);
  EXPECT_EQ(table.numeric.at("episode_index").as<double>()[0], 2);
}

TEST_F(DatasetTest, DiscardedEpisodesAreLeftOut) {
  make();
  edit_info([](json& info) { info["discarded_episode_indices"] = {1, 7}; });
  const auto dataset = open_dataset(root_);
  ASSERT_EQ(dataset->episodes().size(), 2u);
  EXPECT_EQ(dataset->episodes()[1].index, 2);
  EXPECT_EQ(dataset->discarded_episodes(), (std::vector<int64_t>{1, 7}));
  edit_info([](json& info) { info["discarded_episode_indices"] = {0, 1, 2}; });
  expect_contains(open_error(), "all episodes are listed");
}

TEST_F(DatasetTest, EpisodeStatisticsAreSummed) {
  make({.has_stats = false});
  write_text(
      root_ / "meta/episodes_stats.jsonl",
      R"({"episode_index":0,"stats":{"a":{"min":[0],"max":[2],"mean":[1],"std":[1],"count":[2]}}})"
      "\n"
      R"({"episode_index":1,"stats":{"a":{"min":[-3],"max":[5],"mean":[1],"std":[4],"count":[2]}}})"
      "\n");
  const auto stats = open_dataset(root_)->stats().at("a");  // of 0, 2, -3, 5
  EXPECT_EQ(stats.at("min"), std::vector<double>{-3});
  EXPECT_EQ(stats.at("max"), std::vector<double>{5});
  EXPECT_DOUBLE_EQ(stats.at("mean")[0], 1);
  EXPECT_DOUBLE_EQ(stats.at("std")[0], std::sqrt(34.0 / 4));
  EXPECT_FALSE(stats.contains("q01"));
}

TEST_F(DatasetTest, ReadersWorkSideBySide) {
  make();
  const auto dataset = open_dataset(root_);
  const auto hash_of = [&](FrameReader& reader, size_t e, const std::string& camera) {
    const HostTensor frames =
        reader.read(dataset->episodes()[e], camera, std::array<int64_t, 4>{8, 1, 5, 3});
    return hash64(std::as_bytes(frames.as<uint8_t>()));
  };
  std::map<std::pair<size_t, std::string>, uint64_t> expected;
  const auto plain = dataset->make_frame_reader();
  for (size_t e = 0; e < 3; ++e) {
    for (const std::string& camera : options_.cameras) {
      expected[{e, camera}] = hash_of(*plain, e, camera);
    }
  }
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto reader = dataset->make_frame_reader();
      for (int round = 0; round < 10; ++round) {
        const auto e = static_cast<size_t>((t + round) % 3);
        const std::string& camera = options_.cameras[static_cast<size_t>(round % 2)];
        wrong += hash_of(*reader, e, camera) == expected.at({e, camera}) ? 0 : 1;
        wrong +=
            dataset->read_table(dataset->episodes()[e]).num_rows == dataset->episodes()[e].length
                ? 0
                : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_F(DatasetTest, RepackedPicturesAreEqual) {
  make();
  const auto dataset = open_dataset(root_);
  repack_with_images(*dataset, temp_ / "images");
  const auto copy = open_dataset(temp_ / "images");
  ASSERT_EQ(copy->episodes().size(), 3u);
  EXPECT_TRUE(copy->find_feature(options_.cameras[0])->is_image());
  const auto reader = dataset->make_frame_reader(), copy_reader = copy->make_frame_reader();
  for (const Episode& episode : copy->episodes()) {
    for (const std::string& camera : options_.cameras) {
      const std::array<int64_t, 3> rows = {0, episode.length - 1, 4};
      const HostTensor a = reader->read(episode, camera, rows);
      const HostTensor b = copy_reader->read(episode, camera, rows);
      EXPECT_TRUE(std::ranges::equal(a.as<uint8_t>(), b.as<uint8_t>()));
    }
    const EpisodeTable a = dataset->read_table(episode), b = copy->read_table(episode);
    ASSERT_EQ(a.numeric.size(), b.numeric.size());
    for (const auto& [name, values] : a.numeric) {
      EXPECT_TRUE(std::ranges::equal(values.as<double>(), b.numeric.at(name).as<double>())) << name;
    }
  }
  EXPECT_THROW(repack_with_images(*dataset, temp_ / "images"), DataError);
}

// --- What bad input gets ---

TEST_F(DatasetTest, PathMissing) {
  expect_contains(error_of([&] { open_dataset(temp_ / "none"); }), "dataset folder is missing");
  fs::create_directories(root_);
  expect_contains(open_error(), "meta/info.json is missing");
}

TEST_F(DatasetTest, UnknownVersion) {
  make();
  for (const char* version : {"v1.6", "v9.0", "2.1", ""}) {
    edit_info([&](json& info) { info["codebase_version"] = version; });
    expect_contains(open_error(), "version is not read");
  }
}

TEST_F(DatasetTest, EmptyDataset) {
  make();
  write_text(root_ / "meta/episodes.jsonl", "\n");
  expect_contains(open_error(), "dataset is empty");
}

TEST_F(DatasetTest, BadInfo) {
  make();
  struct Case {
    const char* json;
    const char* error;
  };
  const json good = json::parse(read_text_file(root_ / "meta/info.json"));
  const Case cases[] = {
      {R"({"fps": 0})", "frame rate out of bounds"},
      {R"({"fps": "ten"})", "field 'fps'"},
      {R"({"fps": null})", "field 'fps'"},
      {R"({"chunks_size": 0})", "chunks_size"},
      {R"({"chunks_size": 1.5})", "an integer"},
      {R"({"data_path": "../../etc/{episode_index:06d}"})", "leaves the dataset's folder"},
      {R"({"data_path": "/etc/{episode_index:06d}"})", "leaves the dataset's folder"},
      {R"({"data_path": "data/{episode_index"})", "unclosed brace"},
      {R"({"data_path": "data/{secret}"})", "unknown field"},
      {R"({"data_path": "data/{episode_index:1000d}"})", "unknown field"},
      {R"({"video_path": "videos/{video_key}/../../../x"})", "leaves the dataset's folder"},
      {R"({"features": []})", "features"},
      {R"({"features": {"a/b": {"dtype": "float32", "shape": [1]}}})", "feature name"},
      {R"({"features": {"a": {"dtype": "float32", "shape": [0]}}})", "shape out of bounds"},
      {R"({"features": {"a": {"dtype": "float32", "shape": [9999999999, 9999999999]}}})", "shape"},
      {R"({"features": {"a": {"dtype": 3, "shape": [1]}}})", "field 'dtype'"},
      {R"({"features": {"a": {"dtype": "float32"}}})", "field 'shape' is missing"},
  };
  for (const Case& test : cases) {
    json info = good;
    info.update(json::parse(test.json));
    write_text(root_ / "meta/info.json", info.dump());
    expect_contains(open_error(), test.error);
    expect_contains(open_error(), "info.json");
  }
  write_text(root_ / "meta/info.json", "{\"fps\": 10");
  expect_contains(open_error(), "not valid JSON");
}

TEST_F(DatasetTest, BadEpisodeLines) {
  make();
  struct Case {
    const char* line;
    const char* error;
  };
  const Case cases[] = {
      {"{\"episode_index\": 0}", "field 'length' is missing"},
      {"{\"length\": 3}", "field 'episode_index' is missing"},
      {"{\"episode_index\": -1, \"length\": 3}", "episode_index out of bounds"},
      {"{\"episode_index\": 0, \"length\": 0}", "length out of bounds"},
      {"{\"episode_index\": 0, \"length\": 1e300}", "an integer"},
      {"{\"episode_index\": 0, \"length\": 99999999999999999999}", "an integer"},
      {"{\"episode_index\": 0, \"length\": 3, \"tasks\": [1]}", "a string"},
      {"nonsense", "not valid JSON"},
      {"[1]", "not a JSON object"},
  };
  for (const Case& test : cases) {
    write_text(root_ / "meta/episodes.jsonl", std::string("\n") + test.line + "\n");
    expect_contains(open_error(), test.error);
    expect_contains(open_error(), "episodes.jsonl:2");
  }
  write_text(root_ / "meta/episodes.jsonl",
             "{\"episode_index\": 0, \"length\": 3}\n{\"episode_index\": 0, \"length\": 4}\n");
  expect_contains(open_error(), "episode_index given twice");
}

TEST_F(DatasetTest, BadModality) {
  make();
  const auto set = [&](const json& slice) {
    edit_json(root_ / "meta/modality.json", [&](json& m) { m["state"]["arm"] = slice; });
  };
  set({{"start", 0}, {"end", 5}});
  expect_contains(open_error(), "slice does not fit");
  set({{"start", 2}, {"end", 2}});
  expect_contains(open_error(), "slice does not fit");
  set({{"start", -1}, {"end", 2}});
  expect_contains(open_error(), "slice does not fit");
  set({{"end", 2}});
  expect_contains(open_error(), "field 'start' is missing");
  set(3);
  expect_contains(open_error(), "not an object");
  set({{"start", 0}, {"end", 3}, {"rotation_type", "spin"}});
  expect_contains(open_error(), "unknown rotation_type, got 'spin'");
  set({{"start", 0}, {"end", 3}, {"rotation_type", "quaternion"}});
  expect_contains(open_error(), "another width than its rotation_type, got 3, expected 4");
  set({{"start", 0}, {"end", 3}, {"rotation_type", "euler_angles_rpy"}});
  EXPECT_EQ(open_dataset(root_)->modality().state[0].rotation_type, "euler_angles_rpy");
}

TEST_F(DatasetTest, BadTables) {
  make();
  const auto dataset = open_dataset(root_);
  const Episode& episode = dataset->episodes()[0];
  const auto table_error = [&] { return error_of([&] { dataset->read_table(episode); }); };
  const auto edit = [&](auto&& function) { edit_table(root_, options_, 0, function); };
  edit(
      [](auto& columns) { find_numbers(columns, "action").template as<float>()[3 * 3 + 2] = NAN; });
  expect_contains(table_error(), "column 'action', row 3, dim 2");
  edit([](auto& columns) {
    find_numbers(columns, "observation.state").template as<float>()[1] =
        std::numeric_limits<float>::infinity();
  });
  expect_contains(table_error(), "row 0, dim 1");
  edit([](auto& columns) {
    find_numbers(columns, "action") = HostTensor::zeros(DType::kF32, {12, 5});
  });
  expect_contains(table_error(), "another width");
  edit([](auto& columns) { columns.resize(1); });
  expect_contains(
      error_of([&] { dataset->read_columns(episode, std::array<std::string, 1>{"action"}); }),
      "column 'action' is missing");
  fs::copy_file(test_table_path(root_, 1), test_table_path(root_, 0),
                fs::copy_options::overwrite_existing);
  expect_contains(table_error(), "another number of rows");
  fs::remove(test_table_path(root_, 0));
  expect_contains(table_error(), "No such file");
}

TEST_F(DatasetTest, BadVideos) {
  make();
  const auto dataset = open_dataset(root_);
  const std::string camera = options_.cameras[0];
  const fs::path path = test_video_path(root_, 0, camera);
  const auto frame_error = [&](const std::string& key) {
    const auto reader = dataset->make_frame_reader();
    return error_of([&] { reader->read(dataset->episodes()[0], key, std::array<int64_t, 1>{2}); });
  };
  expect_contains(frame_error("observation.images.none"), "no such camera");
  expect_contains(frame_error("action"), "no such camera");
  write_test_video(path, 64, 48, 11, 10, {});
  // A fresh dataset: indexes of videos are cached.
  const auto again = open_dataset(root_);
  const auto reader = again->make_frame_reader();
  expect_contains(
      error_of([&] { reader->read(again->episodes()[0], camera, std::array<int64_t, 1>{2}); }),
      "video has fewer frames");
  write_test_video(path, 48, 48, 12, 10, {});
  const auto third = open_dataset(root_);
  const auto third_reader = third->make_frame_reader();
  expect_contains(error_of([&] {
                    third_reader->read(third->episodes()[0], camera, std::array<int64_t, 1>{2});
                  }),
                  "another picture size");
}

// --- Real datasets ---

TEST_F(DatasetTest, Gr1WithItsOddities) {
  const fs::path root = real_data_folder() / "gr1_picknplace_v20";
  if (!fs::exists(root)) GTEST_SKIP() << "absent: gr1_picknplace_v20 in WAM_DATA_DIR";
  const auto dataset = open_dataset(root);
  EXPECT_EQ(dataset->version(), "v2.0");
  EXPECT_EQ(dataset->fps(), 20);
  ASSERT_EQ(dataset->episodes().size(), 5u);
  const EpisodeTable table = dataset->read_table(dataset->episodes()[4]);
  EXPECT_EQ(table.num_rows, 328);
  EXPECT_EQ(table.numeric.at("action").shape(), Shape({328, 44}));
  EXPECT_FALSE(table.numeric.contains("frame_index"));
  EXPECT_EQ(dataset->modality().annotation.at("human.validity"), "annotation.human.validity");
  EXPECT_EQ(dataset->stats().at("action").at("q01").size(), 44u);
  const auto reader = dataset->make_frame_reader();
  const HostTensor frames = reader->read(dataset->episodes()[4], "observation.images.ego_view",
                                         std::array<int64_t, 2>{327, 0});
  EXPECT_EQ(frames.shape(), Shape({2, 256, 256, 3}));
  expect_contains(error_of([&] {
                    reader->read(dataset->episodes()[0], "observation.images.egoview",
                                 std::array<int64_t, 1>{0});
                  }),
                  "No such file");
}

TEST_F(DatasetTest, EveryRealMetaFolderOpens) {
  const fs::path folder = real_data_folder() / "groot_demo_meta/demo_data";
  if (!fs::exists(folder)) GTEST_SKIP() << "absent: groot_demo_meta in WAM_DATA_DIR";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() == "droid_sample") {
      // Its slices are as wide as its features, its stats of another layout: read as they are.
      EXPECT_EQ(open_dataset(entry.path())->stats().at("action").at("min").size(), 8u);
    }
    const auto dataset = open_dataset(entry.path());
    EXPECT_FALSE(dataset->episodes().empty()) << entry.path();
    EXPECT_FALSE(dataset->modality().state.empty()) << entry.path();
    EXPECT_FALSE(dataset->stats().empty()) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 6);
}

TEST(FrameReaderTest, OneByOneGivesTheSamePictures) {
  for (const bool in_parquet : {false, true}) {
    const TempDir temp;
    const TestDatasetOptions options{.images_in_parquet = in_parquet};
    write_test_dataset(temp / "set", options);
    const auto dataset = open_dataset(temp / "set");
    const auto reader = dataset->make_frame_reader();
    const Episode& episode = dataset->episodes()[2];
    const std::vector<int64_t> rows = {14, 2, 2, 0};
    const HostTensor pictures = reader->read(episode, options.cameras[1], rows);
    const size_t size = pictures.as<uint8_t>().size() / rows.size();
    size_t count = 0;
    reader->read_each(episode, options.cameras[1], rows,
                      [&](size_t place, std::span<const uint8_t> rgb) {
                        const auto same = pictures.as<uint8_t>().subspan(place * size, size);
                        EXPECT_TRUE(std::equal(rgb.begin(), rgb.end(), same.begin(), same.end()));
                        ++count;
                      });
    EXPECT_EQ(count, rows.size());
  }
}

}  // namespace
}  // namespace wam::data
