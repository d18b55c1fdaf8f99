// A tiny run on the built-in world: collected once per test binary.
#pragma once

#include <filesystem>
#include <fstream>
#include <vector>

#include "wam/base/files.h"
#include "wam/sim/collect.h"
#include "wam/tensor/archive.h"
#include "wam/train/config.h"
#include "wam/train/metrics_sink.h"
#include "wam/train/trainer.h"

namespace wam::e2e {

inline const std::filesystem::path& dataset() {
  static const TempDir folder;
  static const std::filesystem::path path = [] {
    sim::CollectOptions options;
    options.path = folder / "table";
    options.episodes = 8;
    options.seed = 3;
    options.world.view_size = 32;
    sim::collect(options, {});
    return folder / "table";
  }();
  return path;
}

// Overrides are put behind the defaults; later ones win.
inline train::TrainConfig config(const std::filesystem::path& run_dir, std::vector<std::string> overrides = {}) {
  const std::string yaml = R"(
seed: 11
steps: 20
micro_batch_size: 2
global_batch_size: 4
save_every: 0
validate_every: 0
validation_samples: 2
model: {preset: custom, dim: 48, layers: 2, heads: 2, ffn_dim: 96, text_len: 300, action_dim: 4, state_dim: 4, coder_dim: 32, num_blocks: 2}
vae: {kind: wan22, dim: 4, latent_channels: 6, standardise: true, sub_batch: 2}
text_encoder: {tokenizer: bytes, vocab: 384, dim: 32, ffn_dim: 48, heads: 2, layers: 1}
clip: {image_size: 28, patch_size: 14, dim: 32, heads: 2, layers: 2}
dataset: {embodiment: sim_table, validation_last: 1}
optimizer: {lr: 0.003, weight_decay: 0.01}
)";
  std::vector<std::string> all = {"run_dir=" + run_dir.string(), "dataset.path=" + dataset().string()};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return train::parse_config(yaml, all, "small run");
}

inline train::TrainResult run(const train::TrainConfig& config, bool resume = false) {
  train::Trainer trainer(config, {.resume = resume, .quiet = true});
  return trainer.run();
}

// Training losses in order.
inline std::vector<double> losses(const std::filesystem::path& run_dir) {
  return train::read_curve(run_dir, "train", "loss").values;
}

inline std::string checkpoint_bytes(const std::filesystem::path& run_dir, int64_t step, const std::string& file) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%08lld", static_cast<long long>(step));
  return read_text_file(run_dir / "checkpoints" / name / file);
}

}  // namespace wam::e2e
