// `wam export`: a checkpoint in another layout, type or state.
#pragma once

#include <filesystem>
#include <string>

#include "wam/tensor/dtype.h"

namespace wam::train {

enum class ExportLayout {
  kDreamZero,    // action_head.* names, config.json, experiment_cfg/: what public servers load
  kTransformer,  // diffusion_pytorch_model.safetensors with Wan's bare names
  kLora,         // DreamZero's, factors and what else differs from the base, whose hash is inside
};

struct ExportOptions {
  std::filesystem::path checkpoint, out;
  ExportLayout layout = ExportLayout::kDreamZero;
  std::string dtype = "keep";        // keep, f32, bf16
  std::string config;                // YAML of the run; empty: the checkpoint's config.yaml
  std::filesystem::path base;        // of an adapter, and of kLora what the factors change
  std::filesystem::path experiment;  // folder whose conf.yaml is copied; empty: the checkpoint's
  bool ema = false;                  // the moving average in place of the weights
  bool has_encoders = true;          // kDreamZero: with the frozen encoders
  int64_t max_shard_bytes = int64_t{5} * 1000 * 1000 * 1000;  // as transformers deals shards
};

// Writes the folder `out`, which must not exist: under a temporary name, then renamed. LoRA factors
// are merged unless the layout keeps them. Returns what it did, as text. Throws ConfigError and
// DataError.
std::string export_checkpoint(const ExportOptions& options);

}  // namespace wam::train
