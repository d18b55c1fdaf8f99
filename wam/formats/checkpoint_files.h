// What a path that a user names holds: which kind of checkpoint, and where its parts lie.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "wam/formats/tensor_name.h"
#include "wam/tensor/archive.h"

namespace wam {

enum class CheckpointKind : uint8_t {
  kTraining,       // a checkpoint folder of ours
  kDreamZero,      // model.safetensors[.index.json] with action_head.* names; full
  kDreamZeroLora,  // the same with LoRA factors and without their base
  kRlinf,          // full_weights.pt
  kPeftAdapter,    // adapter_config.json, adapter_model.safetensors
  kWanBase,        // diffusion_pytorch_model*.safetensors, *.pth
  kSingle,         // one file with one model
};
std::string_view name(CheckpointKind kind);

// Scale and origin of LoRA factors.
struct LoraInfo {
  int64_t rank = 0;
  double alpha = 0;
  bool is_rank_stabilised = false;  // alpha / sqrt(rank) instead of alpha / rank
  std::string base;                 // path or name its writer noted; may be empty
  std::string base_fingerprint;     // model_fingerprint() of its base; empty in public files
  double scale() const;
};

struct CheckpointFiles {
  CheckpointKind kind = CheckpointKind::kSingle;
  std::filesystem::path path;  // as given
  // The archive that holds a part; several parts may lie in one.
  std::map<ModelPart, std::filesystem::path> parts;
  std::filesystem::path tokenizer;  // folder or file; empty: none beside the weights
  std::filesystem::path config_json, metadata_json, ema;  // empty: absent
  std::optional<LoraInfo> lora;  // of a checkpoint whose transformer has LoRA factors
  bool needs_base = false;       // the factors come without the weights that they change
};

// Looks at names alone, never at values. Throws DataError for a path that is none of the above,
// naming what was looked for, and for files that are damaged.
CheckpointFiles find_checkpoint(const std::filesystem::path& path);

// Which model bare names (without action_head.) belong to; nullopt if none is recognised.
std::optional<ModelPart> recognise_part(const TensorArchive& archive);

}  // namespace wam
