#include "tests/cli/small_robot.h"

namespace wam::cli_test {
namespace {

constexpr const char* kRun = R"(
run_dir: run
seed: 5
steps: 2
micro_batch_size: 1
global_batch_size: 2
save_every: 1
validate_every: 0
model:
  preset: custom
  dim: 32
  layers: 1
  heads: 2
  ffn_dim: 32
  text_len: 40
  action_dim: 4
  state_dim: 4
  coder_dim: 16
  num_blocks: 2
vae: {kind: wan22, dim: 4, latent_channels: 4}
text_encoder: {tokenizer: bytes, vocab: 384, dim: 16, ffn_dim: 16, heads: 2, layers: 1}
clip: {image_size: 28, patch_size: 14, dim: 16, heads: 2, layers: 2}
dataset:
  path: dataset
  num_workers: 1
  prefetch_batches: 1
  embodiment:
    embodiment_tag: test
    views: [top]
    view_height: 32
    view_width: 32
    tiling: single
    crop_scale: 1
    color_jitter: false
    prompt_template: "{i}"
    state: [arm]
    action: [arm]
    action_horizon: 8
)";

}  // namespace

SmallRobot::SmallRobot(std::vector<int64_t> lengths) {
  options_.lengths = std::move(lengths);
  options_.height = options_.width = 32;
  options_.cameras = {"observation.images.top"};
  data::write_test_dataset(dataset(), options_);
  data::write_text(folder_ / "run.yaml", kRun);
}

std::filesystem::path SmallRobot::video(int64_t episode) const {
  return data::test_video_path(dataset(), episode, options_.cameras[0]);
}

std::filesystem::path SmallRobot::table(int64_t episode) const {
  return data::test_table_path(dataset(), episode);
}

RunResult SmallRobot::train(std::vector<std::string> arguments, RunOptions options) const {
  options.folder = folder();
  arguments.insert(arguments.begin(), {"train", "run.yaml", "--quiet"});
  return run_wam(arguments, options);
}

RunResult SmallRobot::plan(std::vector<std::string> overrides) const {
  overrides.insert(overrides.begin(), {"plan", "run.yaml"});
  return run_wam(overrides, {.folder = folder()});
}

RunResult SmallRobot::stats() const {
  return run_wam({"stats", "dataset", "--out", "metadata.json", "--force"}, {.folder = folder()});
}

void cut_file(const std::filesystem::path& path, double share) {
  const std::string bytes = read_text_file(path);
  data::write_text(path,
                   bytes.substr(0, static_cast<size_t>(share * static_cast<double>(bytes.size()))));
}

}  // namespace wam::cli_test
