#include "wam/sim/collect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/log.h"

namespace wam::sim {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

CollectOptions small_options(fs::path path) {
  return {.path = std::move(path), .episodes = 3, .seed = 7, .world = {.view_size = 32}};
}

Json read_json(const fs::path& path) { return Json::parse(read_text_file(path)); }

std::vector<Json> read_lines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

// The names in a folder, sorted.
std::vector<std::string> entries(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Collect, WritesALeRobotDataset) {
  const TempDir dir;
  int64_t calls = 0, frames = 0;
  const CollectReport report =
      collect(small_options(dir / "set"), [&](const CollectProgress& progress) {
        EXPECT_EQ(progress.episodes_done, ++calls);
        EXPECT_EQ(progress.episodes, 3);
        frames = progress.frames;
      });
  EXPECT_FALSE(report.reused);
  EXPECT_EQ(report.episodes, 3);
  EXPECT_EQ(report.frames, frames);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(entries(dir.path()), std::vector<std::string>{"set"});
  EXPECT_EQ(entries(dir / "set"), (std::vector<std::string>{"data", "meta", "videos"}));

  const Json info = read_json(dir / "set/meta/info.json");
  EXPECT_EQ(info["codebase_version"], "v2.1");
  EXPECT_EQ(info["fps"], 10);
  EXPECT_EQ(info["total_episodes"], 3);
  EXPECT_EQ(info["total_frames"], frames);
  EXPECT_EQ(info["total_videos"], 6);
  EXPECT_EQ(info["total_chunks"], 1);
  EXPECT_EQ(info["features"]["observation.images.gripper"]["shape"], Json({32, 32, 3}));
  EXPECT_EQ(info["features"]["observation.images.gripper"]["info"]["video.codec"], report.codec);

  const std::vector<Json> tasks = read_lines(dir / "set/meta/tasks.jsonl");
  EXPECT_EQ(static_cast<int64_t>(tasks.size()), report.tasks);
  int64_t total = 0;
  for (const Json& episode : read_lines(dir / "set/meta/episodes.jsonl")) {
    total += episode["length"].get<int64_t>();
    EXPECT_EQ(episode["tasks"].size(), 1u);
  }
  EXPECT_EQ(total, frames);
  EXPECT_EQ(read_json(dir / "set/meta/modality.json")["action"]["gripper"]["start"], 2);
}

TEST(Collect, StatisticsAreThoseOfTheData) {
  const TempDir dir;
  const CollectReport report = collect(small_options(dir / "set"));
  const Json stats = read_json(dir / "set/meta/stats.json");
  for (const char* column : {"observation.state", "action"}) {
    for (int d = 0; d < 3; ++d) {
      EXPECT_LE(stats[column]["min"][d], stats[column]["q01"][d]);
      EXPECT_LT(stats[column]["q01"][d], stats[column]["q99"][d]);
      EXPECT_LE(stats[column]["q99"][d], stats[column]["max"][d]);
      EXPECT_GT(stats[column]["std"][d], 0.01);
    }
  }
  EXPECT_EQ(stats["index"]["max"][0], report.frames - 1);
  const std::vector<Json> per_episode = read_lines(dir / "set/meta/episodes_stats.jsonl");
  ASSERT_EQ(per_episode.size(), 3u);
  const Json& pictures = per_episode[1]["stats"]["observation.images.overview"];
  EXPECT_EQ(pictures["count"][0], per_episode[1]["stats"]["action"]["count"][0]);
  ASSERT_EQ(pictures["mean"].size(), 3u);
  EXPECT_GT(pictures["mean"][0][0][0], 0.1);
  EXPECT_LT(pictures["mean"][0][0][0], 0.9);
}

TEST(Collect, SameOptionsGiveTheSameFiles) {
  const TempDir dir;
  collect(small_options(dir / "a"));
  collect(small_options(dir / "b"));
  size_t compared = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir / "a")) {
    if (!entry.is_regular_file()) continue;
    const fs::path other = dir.path() / "b" / fs::relative(entry.path(), dir / "a");
    EXPECT_EQ(read_text_file(entry.path()), read_text_file(other)) << other;
    ++compared;
  }
  EXPECT_EQ(compared, 3u + 6u + 7u);
  CollectOptions options = small_options(dir / "c");
  options.seed = 8;
  collect(options);
  const char* kTable = "data/chunk-000/episode_000000.parquet";
  EXPECT_NE(read_text_file(dir.path() / "a" / kTable), read_text_file(dir.path() / "c" / kTable));
}

TEST(Collect, AnIdenticalCollectionIsReused) {
  const TempDir dir;
  const CollectReport first = collect(small_options(dir / "set"));
  const auto refuse = [](const CollectProgress&) { FAIL() << "collected again"; };
  const CollectReport second = collect(small_options(dir.path() / "set" / ""), refuse);
  EXPECT_TRUE(second.reused);
  EXPECT_EQ(second.frames, first.frames);
  EXPECT_EQ(second.tasks, first.tasks);
  EXPECT_EQ(second.codec, first.codec);
}

TEST(Collect, AnEmptyFolderIsFilled) {
  const TempDir dir;
  fs::create_directory(dir / "set");
  EXPECT_FALSE(collect(small_options(dir / "set")).reused);
}

std::string refusal(const CollectOptions& options) {
  try {
    collect(options);
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Collect, OtherContentsAreRefusedAndKept) {
  const TempDir dir;
  collect(small_options(dir / "set"));
  CollectOptions other = small_options(dir / "set");
  other.expert.noise = 0.2;
  EXPECT_NE(refusal(other).find("another collection, got noise '0.1', expected noise 0.2"),
            std::string::npos)
      << refusal(other);

  const fs::path video = dir / "set/videos/chunk-000/observation.images.gripper/episode_000002.mp4";
  fs::resize_file(video, 10);
  EXPECT_NE(refusal(small_options(dir / "set")).find("changed"), std::string::npos);
  fs::remove(video);
  EXPECT_NE(refusal(small_options(dir / "set")).find("missing"), std::string::npos);
  write_file_atomic(dir / "set/meta/wam_sim.json", std::string_view("{\"options\": 1}"));
  EXPECT_NE(refusal(small_options(dir / "set")).find("cannot be read"), std::string::npos);

  fs::create_directory(dir / "mine");
  write_file_atomic(dir / "mine/notes.txt", std::string_view("keep"));
  EXPECT_NE(refusal(small_options(dir / "mine")).find("not empty"), std::string::npos);
  EXPECT_EQ(read_text_file(dir / "mine/notes.txt"), "keep");
  EXPECT_NE(refusal(small_options(dir / "mine/notes.txt")).find("not a folder"), std::string::npos);
}

TEST(Collect, AStoppedCollectionLeavesNothing) {
  const TempDir dir;
  const auto stop = [](const CollectProgress& progress) {
    if (progress.episodes_done == 2) throw std::runtime_error("stopped");
  };
  EXPECT_THROW(collect(small_options(dir / "set"), stop), std::runtime_error);
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(Collect, WhatAKilledCollectionLeftIsReplaced) {
  const TempDir dir;
  fs::create_directories(dir / "set.partial/data");
  write_file_atomic(dir / "set.partial/.wam_sim_collect", std::string_view(""));
  write_file_atomic(dir / "set.partial/data/half", std::string_view("x"));
  set_log_level(LogLevel::kError);
  EXPECT_FALSE(collect(small_options(dir / "set")).reused);
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(entries(dir.path()), std::vector<std::string>{"set"});
  EXPECT_FALSE(fs::exists(dir / "set/data/half"));
}

TEST(Collect, APartialFolderOfOthersIsNotTouched) {
  const TempDir dir;
  fs::create_directory(dir / "set.partial");
  write_file_atomic(dir / "set.partial/notes.txt", std::string_view("keep"));
  EXPECT_NE(refusal(small_options(dir / "set")).find("other data"), std::string::npos);
  EXPECT_EQ(read_text_file(dir / "set.partial/notes.txt"), "keep");
}

TEST(Collect, TwoCannotCollectIntoOneFolder) {
  const TempDir dir;
  std::string second;
  collect(small_options(dir / "set"),
          [&](const CollectProgress&) { second = refusal(small_options(dir / "set")); });
  EXPECT_NE(second.find("another process"), std::string::npos) << second;
  EXPECT_TRUE(collect(small_options(dir / "set")).reused);
}

TEST(Collect, OptionsAreChecked) {
  const TempDir dir;
  const auto refuses = [&](auto change, const std::string& where) {
    CollectOptions options = small_options(dir / "set");
    change(options);
    try {
      collect(options);
      ADD_FAILURE() << where << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.info().where, where);
    }
  };
  refuses([](CollectOptions& o) { o.path = ""; }, "sim.path");
  refuses([](CollectOptions& o) { o.episodes = 0; }, "sim.episodes");
  refuses([](CollectOptions& o) { o.gop = 0; }, "sim.gop");
  refuses([](CollectOptions& o) { o.crf = 52; }, "sim.crf");
  refuses([](CollectOptions& o) { o.world.view_size = 31; }, "sim.view_size");
  refuses([](CollectOptions& o) { o.codec = "h26"; }, "video codec");
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(Collect, UnwritablePlacesAreNamed) {
  const std::string message = refusal(small_options("/proc/wam_sim_collect/set"));
  EXPECT_NE(message.find("/proc/wam_sim_collect"), std::string::npos) << message;
}

}  // namespace
}  // namespace wam::sim
