// wam data repack SOURCE TARGET: a dataset again as LeRobot v3.0, or with its pictures in parquet.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <string>

#include "wam/cli/data_commands.h"
#include "wam/data/repack.h"

namespace wam::cli {
namespace {

struct RepackArgs {
  std::filesystem::path source, target;
  std::string to = "v3.0";
  int64_t data_mb = 100, video_mb = 200, episodes_per_file = 0;
};

void run_repack(const RepackArgs& args) {
  if (args.to == "v3.0") {
    data::repack_as_v3(args.source, args.target,
                       {.data_file_bytes = args.data_mb << 20,
                        .video_file_bytes = args.video_mb << 20,
                        .episodes_per_file = args.episodes_per_file});
  } else {
    data::repack_with_images(*data::open_dataset(args.source), args.target,
                             {.as_jpeg = args.to == "jpeg"});
  }
  const auto written = data::open_dataset(args.target);
  fmt::print("wrote {}: {}, {} episodes\n", args.target.string(), written->version(),
             written->episodes().size());
}

}  // namespace

void add_data_repack(CLI::App& data) {
  auto args = std::make_shared<RepackArgs>();
  CLI::App* command = data.add_subcommand(
      "repack", "Write a v2.0 or v2.1 dataset as v3.0, or with its pictures inside parquet");
  command->add_option("source", args->source, "folder of the dataset")->required();
  command->add_option("target", args->target, "folder to write; new or empty")->required();
  command
      ->add_option("--to", args->to,
                   "v3.0 (videos joined, not encoded again), or pictures as png (exact) or jpeg")
      ->check(CLI::IsMember({"v3.0", "png", "jpeg"}))
      ->capture_default_str();
  const auto add_size = [&](const char* name, int64_t& value, const char* help) {
    command->add_option(name, value, help)
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
        ->capture_default_str();
  };
  add_size("--data-mb", args->data_mb, "v3.0: most megabytes of a data file");
  add_size("--video-mb", args->video_mb, "v3.0: most megabytes of a video file");
  command
      ->add_option("--episodes-per-file", args->episodes_per_file,
                   "v3.0: most episodes of a file; 0: as many as fit")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  command->callback([args] { run_repack(*args); });
}

}  // namespace wam::cli
