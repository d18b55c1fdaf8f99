// A dataset in memory for tests: two cameras, a state and an action column, task_index and one
// text annotation. Values say where they come from: pixel and number depend on episode, row, place.
#pragma once

#include <atomic>

#include "wam/base/error.h"
#include "wam/data/dataset.h"

namespace wam::data {

struct FakeOptions {
  std::vector<int64_t> lengths = {60, 50, 7};
  int64_t height = 12, width = 16;
  int64_t state_width = 5, action_width = 3;
  int64_t task_switch_row = -1;  // rows from here on have task 1
  bool with_stats = true;
};

class FakeDataset : public Dataset {
 public:
  explicit FakeDataset(FakeOptions options = {}) : options_(std::move(options)) {
    features_ = {{"observation.images.front", "video", {options_.height, options_.width, 3}, {}},
                 {"observation.images.wrist", "video", {options_.height, options_.width, 3}, {}},
                 {"observation.state", "float32", {options_.state_width}, {}},
                 {"action", "float32", {options_.action_width}, {}},
                 {"task_index", "int64", {1}, {}},
                 {"annotation.note", "string", {1}, {}}};
    for (size_t i = 0; i < options_.lengths.size(); ++i) {
      // Episode indices are keys: 10, 20, ... rather than positions.
      episodes_.push_back({static_cast<int64_t>(10 * (i + 1)), options_.lengths[i], {}});
    }
    modality_.state = {{"arm", "observation.state", 0, 3, true, ""},
                       {"gripper", "observation.state", 3, options_.state_width, true, ""}};
    modality_.action = {{"arm", "action", 0, options_.action_width, true, ""}};
    modality_.video = {{"front", "observation.images.front"}};
    modality_.annotation = {{"note", "annotation.note"}};
    if (options_.with_stats) fill_stats();
  }

  static double value(int64_t episode, int64_t row, int64_t dim) {
    return 0.001 * static_cast<double>(episode) + 0.01 * static_cast<double>(row) +
           0.1 * static_cast<double>(dim);
  }
  static uint8_t pixel(int64_t episode, int64_t row, int64_t camera) {
    return static_cast<uint8_t>((episode + 3 * row + 101 * camera) % 256);
  }

  const std::filesystem::path& root() const override { return root_; }
  std::string version() const override { return "v2.1"; }
  double fps() const override { return 10; }
  const std::vector<Feature>& features() const override { return features_; }
  const Feature* find_feature(const std::string& key) const override {
    for (const Feature& feature : features_) {
      if (feature.key == key) return &feature;
    }
    return nullptr;
  }
  const std::vector<Episode>& episodes() const override { return episodes_; }
  const Modality& modality() const override { return modality_; }
  const std::map<int64_t, std::string>& tasks() const override { return tasks_; }
  using Stats = std::map<std::string, std::map<std::string, std::vector<double>>>;
  const Stats& stats() const override { return stats_; }
  const Stats& relative_stats() const override { return relative_stats_; }

  EpisodeTable read_table(const Episode& episode) const override {
    ++tables_read;
    EpisodeTable table;
    table.num_rows = episode.length;
    table.numeric["observation.state"] = column(episode, options_.state_width, 0);
    table.numeric["action"] = column(episode, options_.action_width, 50);
    HostTensor task(DType::kF64, {episode.length, 1});
    for (int64_t row = 0; row < episode.length; ++row) {
      const bool late = options_.task_switch_row >= 0 && row >= options_.task_switch_row;
      task.as<double>()[static_cast<size_t>(row)] = late ? 1 : 0;
      table.text["annotation.note"].push_back(late ? "" : "Note the Cup");
    }
    table.numeric["task_index"] = task;
    if (poison_row >= 0 && poison_row < episode.length) {
      table.numeric["action"]
          .as<double>()[static_cast<size_t>(poison_row * options_.action_width)] =
          std::numeric_limits<double>::quiet_NaN();
    }
    return table;
  }

  class Reader : public FrameReader {
   public:
    explicit Reader(const FakeOptions& options) : options_(options) {}
    HostTensor read(const Episode& episode, const std::string& camera,
                    std::span<const int64_t> rows) override {
      HostTensor frames(DType::kU8, {std::ssize(rows), options_.height, options_.width, 3});
      const auto bytes = static_cast<size_t>(options_.height * options_.width * 3);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto frame = frames.as<uint8_t>().subspan(i * bytes, bytes);
        const uint8_t shade = pixel(episode.index, rows[i], camera.ends_with("wrist") ? 1 : 0);
        std::fill(frame.begin(), frame.end(), shade);
      }
      return frames;
    }

   private:
    FakeOptions options_;
  };
  std::unique_ptr<FrameReader> make_frame_reader() const override {
    return std::make_unique<Reader>(options_);
  }

  mutable std::atomic<int64_t> tables_read = 0;
  int64_t poison_row = -1;  // its first action is not a number

 private:
  HostTensor column(const Episode& episode, int64_t width, int64_t first_dim) const {
    HostTensor tensor(DType::kF64, {episode.length, width});
    for (int64_t row = 0; row < episode.length; ++row) {
      for (int64_t dim = 0; dim < width; ++dim) {
        tensor.as<double>()[static_cast<size_t>(row * width + dim)] =
            value(episode.index, row, first_dim + dim);
      }
    }
    return tensor;
  }
  void fill_stats() {
    for (const auto& [key, width] : {std::pair{"observation.state", options_.state_width},
                                     std::pair{"action", options_.action_width}}) {
      for (const auto& [name, level] : {std::pair{"q01", -1.0}, std::pair{"min", -2.0}}) {
        stats_[key][name].assign(static_cast<size_t>(width), level);
      }
      for (const auto& [name, level] : {std::pair{"q99", 9.0}, std::pair{"max", 10.0},
                                        std::pair{"std", 2.0}, std::pair{"mean", 1.0}}) {
        stats_[key][name].assign(static_cast<size_t>(width), level);
      }
    }
  }

  FakeOptions options_;
  std::filesystem::path root_ = "fake";
  std::vector<Feature> features_;
  std::vector<Episode> episodes_;
  Modality modality_;
  std::map<int64_t, std::string> tasks_ = {{0, "pick up the cup"}, {1, "put it down"}};
  Stats stats_, relative_stats_;
};

}  // namespace wam::data
