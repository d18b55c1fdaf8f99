// wam stats DATASET: normalisation statistics as metadata.json in the public layout.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"
#include "wam/cli/commands.h"
#include "wam/cli/embodiment_arg.h"
#include "wam/cli/progress.h"
#include "wam/data/slice_lookup.h"
#include "wam/data/stats.h"

namespace wam::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDefaultHorizon = 24;

struct StatsArgs {
  fs::path dataset, out = "metadata.json", relative_out;
  std::string embodiment, tag;
  std::vector<std::string> relative;
  std::vector<int64_t> episodes;
  int64_t horizon = 0;  // 0: the embodiment's, else kDefaultHorizon
  bool per_step = false, force = false;
};

// What is summarised, and under which names it is written.
struct StatsJob {
  std::unique_ptr<data::Dataset> dataset;
  std::optional<data::Embodiment> embodiment;
  std::string tag;
  std::vector<std::string> relative;
  std::vector<data::StatsSlice> slices;
  data::StatsOptions options;
};

void refuse_existing(const fs::path& path, bool force) {
  std::error_code ignored;
  if (path.empty() || force || !fs::exists(path, ignored)) return;
  throw ConfigError({.where = path.string(),
                     .what = "file exists",
                     .expected = "a new file",
                     .remedy = "Name another with --out, or add --force to replace it."});
}

// Looked at before the hours of reading, not after.
void check_targets(const StatsArgs& args, const StatsJob& job) {
  refuse_existing(args.out, args.force);
  refuse_existing(args.relative_out, args.force);
  if (!args.relative_out.empty() && job.relative.empty()) {
    throw ConfigError({.where = "--relative-out",
                       .what = "no action key is relative",
                       .expected = "keys named by --relative or by the embodiment",
                       .remedy = "Leave it out, or add --relative KEY."});
  }
}

void check_episodes(const data::Dataset& dataset, const std::vector<int64_t>& wanted) {
  std::set<int64_t> known;
  for (const data::Episode& episode : dataset.episodes()) known.insert(episode.index);
  for (const int64_t index : wanted) {
    if (known.contains(index)) continue;
    throw ConfigError({.where = "--episodes",
                       .what = "no such episode",
                       .got = std::to_string(index),
                       .expected = fmt::format("one of the dataset's {} episodes, {} to {}",
                                               known.size(), *known.begin(), *known.rbegin()),
                       .remedy = "Choose episodes the dataset has."});
  }
}

std::string default_tag(const data::Dataset& dataset) {
  if (!dataset.robot_type().empty()) return dataset.robot_type();
  std::error_code ignored;
  const std::string folder = fs::canonical(dataset.root(), ignored).filename().string();
  return folder.empty() ? "robot" : folder;
}

StatsJob make_job(const StatsArgs& args) {
  StatsJob job;
  if (!args.embodiment.empty()) job.embodiment = embodiment_from_argument(args.embodiment);
  job.dataset = data::open_dataset(args.dataset);
  if (job.embodiment) {
    job.tag = job.embodiment->tag;
    job.relative = job.embodiment->relative_action_keys;
    job.slices = data::embodiment_slices(*job.dataset, *job.embodiment);
  } else {
    job.tag = args.tag.empty() ? default_tag(*job.dataset) : args.tag;
    job.relative = args.relative;
    job.slices = data::modality_slices(*job.dataset, job.relative);
  }
  const int64_t horizon = job.embodiment ? job.embodiment->action_horizon : kDefaultHorizon;
  job.options.horizon = args.horizon > 0 ? args.horizon : horizon;
  job.options.per_step = args.per_step;
  job.options.episodes = args.episodes;
  check_episodes(*job.dataset, args.episodes);
  check_targets(args, job);
  if (job.slices.empty()) {
    throw DataError({.where = args.dataset.string(),
                     .what = "no state or action columns",
                     .expected = "columns named state or action, or a meta/modality.json",
                     .remedy = "Name the columns with --embodiment FILE."});
  }
  return job;
}

std::string metadata_text(const StatsJob& job, const data::NormStats& stats) {
  if (!job.embodiment)
    return data::dataset_metadata_json(*job.dataset, job.tag, stats, job.relative);
  std::map<std::string, data::VideoInfo> video;
  for (const std::string& view : job.embodiment->views) {
    const data::Feature& camera = *job.dataset->find_feature(data::find_camera(*job.dataset, view));
    video[view] = {camera.picture_width(), camera.picture_height(), job.dataset->fps()};
  }
  return data::metadata_json(*job.embodiment, stats, video);
}

std::map<std::string, data::KeyStats> relative_part(const StatsJob& job,
                                                    const data::NormStats& stats) {
  std::map<std::string, data::KeyStats> part;
  for (const std::string& key : job.relative) part[key] = stats.action.at(key);
  return part;
}

void print_key(const char* modality, const std::string& key, bool is_relative,
               const data::KeyStats& stats) {
  const auto at = [&](const char* name, size_t i) { return stats.values.at(name)[i]; };
  const size_t count = stats.values.at("min").size(), width = static_cast<size_t>(stats.width);
  for (size_t i = 0; i < count; ++i) {
    std::string name = fmt::format("{}.{}[{}]", modality, key, i % width);
    if (count > width) name += fmt::format(" step {}", i / width);
    if (is_relative) name += " relative";
    fmt::print("{:<40} {:>11.5g} {:>11.5g} {:>11.5g} {:>11.5g} {:>11.5g} {:>11.5g}\n", name,
               at("min", i), at("q01", i), at("mean", i), at("q99", i), at("max", i), at("std", i));
  }
}

void print_statistics(const StatsJob& job, const data::NormStats& stats) {
  fmt::print("{:<40} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "number", "min", "q01", "mean",
             "q99", "max", "std");
  for (const auto& [key, values] : stats.state) print_key("state", key, false, values);
  for (const auto& [key, values] : stats.action) {
    const bool is_relative = std::ranges::count(job.relative, key) > 0;
    print_key("action", key, is_relative, values);
  }
}

void run_stats(const StatsArgs& args) {
  StatsJob job = make_job(args);
  data::NormStats stats;
  {
    ProgressLine line("reading", "episodes");
    job.options.progress = [&line](int64_t done, int64_t total) {
      // Percentiles take further passes over the data.
      line.update((done - 1) % total + 1, total, fmt::format(", pass {}", (done - 1) / total + 1));
    };
    stats = data::compute_statistics(*job.dataset, job.slices, job.options);
  }
  print_statistics(job, stats);
  write_file_atomic(args.out, metadata_text(job, stats));
  fmt::print("wrote {} under the embodiment tag '{}'\n", args.out.string(), job.tag);
  if (args.relative_out.empty()) return;
  write_file_atomic(args.relative_out, data::relative_stats_json(relative_part(job, stats)));
  fmt::print("wrote {} over a horizon of {} steps\n", args.relative_out.string(),
             job.options.horizon);
}

}  // namespace

void add_stats(CLI::App& app, int&) {
  auto args = std::make_shared<StatsArgs>();
  CLI::App* command =
      app.add_subcommand("stats", "Compute normalisation statistics: metadata.json");
  command->add_option("dataset", args->dataset, "folder of a LeRobot dataset")->required();
  CLI::Option* embodiment =
      command->add_option("--embodiment", args->embodiment,
                          "a built-in robot or a YAML file; else the dataset's own keys");
  command->add_option("--out", args->out, "file to write")->capture_default_str();
  command->add_flag("--force", args->force, "replace files that exist");
  command->add_option("--tag", args->tag, "embodiment tag to write under; else the robot type")
      ->excludes(embodiment);
  command
      ->add_option("--relative", args->relative, "action keys relative to the chunk's first state")
      ->delimiter(',')
      ->excludes(embodiment);
  command
      ->add_option("--horizon", args->horizon,
                   "steps of a chunk, for relative actions; else the embodiment's, or 24")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_flag("--per-step", args->per_step, "statistics of relative actions for each step");
  command->add_option(
      "--relative-out", args->relative_out,
      "also write the relative keys as meta/relative_stats_dreamzero.json has them");
  command->add_option("--episodes", args->episodes, "only these episode indexes")->delimiter(',');
  command->callback([args] { run_stats(*args); });
}

}  // namespace wam::cli
