// wam data info DATASET: what is in a dataset, from its meta folder alone.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "wam/base/strings.h"
#include "wam/cli/data_commands.h"
#include "wam/data/dataset.h"

namespace wam::cli {
namespace {

constexpr size_t kShownTasks = 20;
constexpr size_t kShownDims = 64;
constexpr size_t kShownNames = 80;  // letters of all names of a feature

struct InfoArgs {
  std::filesystem::path dataset;
  bool episodes = false, statistics = false;
};

void print_lengths(const data::Dataset& dataset) {
  std::vector<int64_t> lengths;
  int64_t rows = 0;
  for (const data::Episode& episode : dataset.episodes()) {
    lengths.push_back(episode.length);
    rows += episode.length;
  }
  std::sort(lengths.begin(), lengths.end());
  fmt::print(
      "{} episodes, {} rows, {:.2f} h at {:g} frames/s; an episode has {} to {} rows, half of them "
      "at most {}\n",
      lengths.size(), rows, static_cast<double>(rows) / dataset.fps() / 3600, dataset.fps(),
      lengths.front(), lengths.back(), lengths[(lengths.size() - 1) / 2]);
  const size_t discarded = dataset.discarded_episodes().size();
  if (discarded > 0) fmt::print("{} episodes are discarded by meta/info.json\n", discarded);
}

std::string camera_text(const data::Feature& feature) {
  std::string text = fmt::format("{}x{}", feature.picture_height(), feature.picture_width());
  for (const std::string& part : {feature.codec, feature.pixel_format}) {
    if (!part.empty()) text += " " + part;
  }
  if (feature.is_depth_map) text += " depth";
  return text;
}

std::string what_of(const data::Feature& feature) {
  if (feature.is_camera()) return camera_text(feature);
  if (feature.names.empty() || std::ssize(feature.names) != feature.width()) return "";
  const std::string names = join(feature.names, ", ");
  if (names.size() <= kShownNames) return names;
  return feature.names.front() + ", ... " + feature.names.back();
}

void print_features(const data::Dataset& dataset) {
  fmt::print("\n{:<36} {:<9} {:>12}  {}\n", "feature", "type", "shape", "what");
  for (const data::Feature& feature : dataset.features()) {
    std::string shape = "[" + fmt::format("{}", fmt::join(feature.shape, ",")) + "]";
    fmt::print("{:<36} {:<9} {:>12}  {}\n", feature.key, feature.dtype, shape, what_of(feature));
  }
}

void print_modality(const data::Dataset& dataset) {
  const data::Modality& modality = dataset.modality();
  fmt::print("\n{:<36} {}\n", "key", "numbers of a column, or feature");
  const auto slices = [](const char* group, const std::vector<data::ModalitySlice>& list) {
    for (const data::ModalitySlice& slice : list) {
      fmt::print("{:<36} {}[{}:{}]{}\n", std::string(group) + "." + slice.key, slice.original_key,
                 slice.begin, slice.end, slice.absolute ? "" : ", relative");
    }
  };
  slices("state", modality.state);
  slices("action", modality.action);
  for (const auto& [key, feature] : modality.video)
    fmt::print("{:<36} {}\n", "video." + key, feature);
  for (const auto& [key, column] : modality.annotation) {
    fmt::print("{:<36} {}\n", "annotation." + key, column);
  }
}

// The most frequent ones.
void print_tasks(const data::Dataset& dataset) {
  std::map<std::string, int64_t> counts;
  for (const auto& [index, text] : dataset.tasks()) counts[text] = 0;
  for (const data::Episode& episode : dataset.episodes()) {
    for (const std::string& task : episode.tasks) ++counts[task];
  }
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  fmt::print("\n{:>9}  task ({} in all)\n", "episodes", sorted.size());
  for (size_t i = 0; i < std::min(sorted.size(), kShownTasks); ++i) {
    fmt::print("{:>9}  {}\n", sorted[i].second, sorted[i].first);
  }
  if (sorted.size() > kShownTasks) fmt::print("{:>9}  ...\n", "");
}

void print_statistics(const data::Dataset& dataset) {
  if (dataset.stats().empty()) {
    fmt::print("\nno statistics: `wam stats` computes them\n");
    return;
  }
  constexpr const char* kNames[] = {"min", "q01", "mean", "q99", "max", "std"};
  fmt::print("\n{:<36}", "number");
  for (const char* name : kNames) fmt::print(" {:>11}", name);
  fmt::print("\n");
  for (const auto& [column, stats] : dataset.stats()) {
    const data::Feature* feature = dataset.find_feature(column);
    if (feature == nullptr || feature->is_camera()) continue;
    const auto width = static_cast<size_t>(std::max<int64_t>(feature->width(), 0));
    for (size_t dim = 0; dim < std::min(width, kShownDims); ++dim) {
      fmt::print("{:<36}", fmt::format("{}[{}]", column, dim));
      for (const char* name : kNames) {
        const auto found = stats.find(name);
        const bool has = found != stats.end() && dim < found->second.size();
        fmt::print(" {:>11}", has ? fmt::format("{:.5g}", found->second[dim]) : "-");
      }
      fmt::print("\n");
    }
  }
}

void print_episodes(const data::Dataset& dataset) {
  fmt::print("\n{:>9} {:>9}  tasks\n", "episode", "rows");
  for (const data::Episode& episode : dataset.episodes()) {
    fmt::print("{:>9} {:>9}  {}\n", episode.index, episode.length, join(episode.tasks, "; "));
  }
}

void run_info(const InfoArgs& args) {
  const auto dataset = data::open_dataset(args.dataset);
  const std::string robot = dataset->robot_type();
  fmt::print("{}: LeRobot {}{}\n", args.dataset.string(), dataset->version(),
             robot.empty() ? "" : ", robot " + robot);
  print_lengths(*dataset);
  print_features(*dataset);
  print_modality(*dataset);
  print_tasks(*dataset);
  if (args.statistics) print_statistics(*dataset);
  if (args.episodes) print_episodes(*dataset);
}

}  // namespace

void add_data_info(CLI::App& data) {
  auto args = std::make_shared<InfoArgs>();
  CLI::App* command =
      data.add_subcommand("info", "A table of what is in a dataset; reads its meta alone");
  command->add_option("dataset", args->dataset, "folder of a LeRobot dataset")->required();
  command->add_flag("--episodes", args->episodes, "list every episode");
  command->add_flag("--statistics", args->statistics, "list the statistics of every number");
  command->callback([args] { run_info(*args); });
}

}  // namespace wam::cli
