#include "wam/formats/checkpoint_files.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/quote.h"

namespace wam {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Largest config that is read.
constexpr size_t kMaxConfigBytes = size_t{64} << 20;
// A rank no adapter has; sizes of factors are checked against their base on top of it.
constexpr int64_t kMaxRank = 1 << 16;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

fs::path existing(const fs::path& path) { return is_file(path) ? path : fs::path(); }

fs::path file_or_index(const fs::path& folder, const std::string& stem) {
  const fs::path index = folder / (stem + ".safetensors.index.json");
  return is_file(index) ? index : existing(folder / (stem + ".safetensors"));
}

fs::path first_of(const fs::path& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (is_file(folder / name)) return folder / name;
  }
  return {};
}

json read_object(const fs::path& path) {
  try {
    json object = json::parse(read_text_file(path, kMaxConfigBytes));
    if (object.is_object()) return object;
  } catch (const json::exception&) {
  }
  throw DataError({.where = path.string(),
                   .what = "is not a JSON object",
                   .remedy = "The file is damaged: fetch it again."});
}

[[noreturn]] void refuse_adapter(const fs::path& path, const std::string& what,
                                 const std::string& remedy) {
  throw DataError({.where = path.string(), .what = what, .remedy = remedy});
}

LoraInfo checked(LoraInfo info, const fs::path& path) {
  if (info.rank < 1 || info.rank > kMaxRank || !std::isfinite(info.alpha) || info.alpha == 0) {
    throw DataError(
        {.where = path.string(),
         .what = "LoRA rank or alpha is out of range",
         .got = "rank " + std::to_string(info.rank) + ", alpha " + std::to_string(info.alpha),
         .expected = "rank 1 to 65536, alpha finite and not 0",
         .remedy = "Correct the file by what the adapter was trained with."});
  }
  return info;
}

double number_or(const json& object, const char* key, double fallback) {
  return object.contains(key) && object[key].is_number() ? object[key].get<double>() : fallback;
}

// Variants that change what the two factors mean; an adapter without them is the plain sum.
void refuse_variants(const json& config, const fs::path& path) {
  if (config.value("peft_type", json("LORA")) != json("LORA")) {
    refuse_adapter(path, "is an adapter of another kind: " + config["peft_type"].dump(),
                   "Merge it into its base with the PEFT library first.");
  }
  for (const char* key : {"use_dora", "fan_in_fan_out", "lora_bias"}) {
    if (config.contains(key) && config[key] == json(true)) {
      refuse_adapter(path, std::string("uses ") + key + ", which is not supported",
                     "Merge it into its base with the PEFT library first.");
    }
  }
  for (const char* key : {"alpha_pattern", "rank_pattern", "megatron_config"}) {
    if (config.contains(key) && !config[key].is_null() && !config[key].empty()) {
      refuse_adapter(path, std::string("uses ") + key + ", which is not supported",
                     "Merge it into its base with the PEFT library first.");
    }
  }
}

LoraInfo peft_info(const fs::path& path) {
  const json config = read_object(path);
  refuse_variants(config, path);
  LoraInfo info{.rank = static_cast<int64_t>(std::clamp(number_or(config, "r", 0), 0.0, 1e9)),
                .alpha = number_or(config, "lora_alpha", 0),
                .is_rank_stabilised = config.value("use_rslora", json(false)) == json(true)};
  if (config.contains("base_model_name_or_path") && config["base_model_name_or_path"].is_string())
    info.base = config["base_model_name_or_path"];
  return checked(info, path);
}

// Keys of a config.json that public code writes nested, and ours flat.
const json* find_nested(const json& object, const char* key, int depth = 0) {
  if (object.contains(key)) return &object[key];
  if (depth == 4) return nullptr;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_object()) continue;
    if (const json* found = find_nested(value, key, depth + 1)) return found;
  }
  return nullptr;
}

LoraInfo lora_of(const TensorArchive& archive, const fs::path& config_path) {
  LoraInfo info;
  const auto& metadata = archive.metadata();
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  info.base_fingerprint = text("base_fingerprint");
  info.base = text("base");
  json rank, alpha;
  try {
    if (!text("lora_rank").empty()) rank = json::parse(text("lora_rank"));
    if (!text("lora_alpha").empty()) alpha = json::parse(text("lora_alpha"));
  } catch (const json::exception&) {
    refuse_adapter(archive.files().front(), "metadata lora_rank or lora_alpha is no number",
                   "The file is damaged: fetch it again.");
  }
  if (!config_path.empty() && (rank.is_null() || alpha.is_null())) {
    const json config = read_object(config_path);
    const json *r = find_nested(config, "lora_rank"), *a = find_nested(config, "lora_alpha");
    if (rank.is_null() && r != nullptr) rank = *r;
    if (alpha.is_null() && a != nullptr) alpha = *a;
  }
  if (!rank.is_number() || !alpha.is_number()) {
    refuse_adapter(archive.files().front(),
                   "has LoRA factors but nothing says their rank and alpha",
                   "Put config.json with lora_rank and lora_alpha beside it, as DreamZero does.");
  }
  info.rank = static_cast<int64_t>(std::clamp(rank.get<double>(), 0.0, 1e9));
  info.alpha = alpha.get<double>();
  return checked(info, archive.files().front());
}

// Which parts an archive holds, and whether its transformer comes with factors and with their base.
struct Contents {
  std::map<ModelPart, int64_t> tensors;
  bool has_factors = false, has_base = false;
};

Contents contents_of(const TensorArchive& archive) {
  Contents contents;
  const std::optional<ModelPart> bare = recognise_part(archive);
  std::string one_factor;
  for (const std::string& full : archive.names()) {
    const TensorName parsed = parse_tensor_name(full);
    if (!parsed.has_part && !bare) continue;
    ++contents.tensors[parsed.has_part ? parsed.part : *bare];
    if (parsed.lora != LoraFactor::kNone) one_factor = parsed.name;
  }
  contents.has_factors = !one_factor.empty();
  for (const std::string& full : archive.names()) {
    const TensorName parsed = parse_tensor_name(full);
    contents.has_base |= parsed.lora == LoraFactor::kNone && parsed.name == one_factor;
  }
  return contents;
}

void add_archive(CheckpointFiles& files, const fs::path& path) {
  const auto archive = open_tensor_archive(path);
  const Contents contents = contents_of(*archive);
  for (const auto& [part, count] : contents.tensors) files.parts[part] = path;
  if (contents.has_factors) {
    files.lora = lora_of(*archive, files.config_json);
    files.needs_base = !contents.has_base;
    if (files.needs_base && files.kind == CheckpointKind::kDreamZero)
      files.kind = CheckpointKind::kDreamZeroLora;
  }
  if (!files.parts.empty()) return;
  throw DataError({.where = path.string(),
                   .what = "holds no model that is known",
                   .got = archive->names().empty()
                              ? "no tensors"
                              : "names such as " + quote(archive->names().front()),
                   .expected = "a Wan transformer, VAE, UMT5 encoder or CLIP tower",
                   .remedy = "List the names with wam inspect."});
}

void read_peft(CheckpointFiles& files) {
  files.kind = CheckpointKind::kPeftAdapter;
  files.needs_base = true;
  files.lora = peft_info(files.path / "adapter_config.json");
  const fs::path weights =
      first_of(files.path, {"adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt"});
  if (weights.empty()) {
    refuse_adapter(files.path, "has adapter_config.json but no adapter_model.safetensors",
                   "Fetch the missing file.");
  }
  files.parts[ModelPart::kDit] = weights;
}

void read_wan_base(CheckpointFiles& files, const fs::path& dit) {
  files.kind = CheckpointKind::kWanBase;
  files.parts[ModelPart::kDit] = dit;
  const auto add = [&](ModelPart part, std::initializer_list<const char*> names) {
    const fs::path found = first_of(files.path, names);
    if (!found.empty()) files.parts[part] = found;
  };
  add(ModelPart::kVae, {"Wan2.2_VAE.pth", "Wan2.1_VAE.pth"});
  add(ModelPart::kText, {"models_t5_umt5-xxl-enc-bf16.pth"});
  add(ModelPart::kClip, {"models_clip_open-clip-xlm-roberta-large-vit-huge-14.pth"});
}

void read_folder(CheckpointFiles& files) {
  const fs::path& folder = files.path;
  files.config_json = existing(folder / "config.json");
  files.metadata_json = existing(folder / "experiment_cfg" / "metadata.json");
  if (files.metadata_json.empty()) files.metadata_json = existing(folder / "metadata.json");
  files.ema = file_or_index(folder, "ema");
  if (is_file(folder / "adapter_config.json")) return read_peft(files);
  if (const fs::path model = file_or_index(folder, "model"); !model.empty()) {
    files.kind = is_file(folder / "trainer_state.json") && is_file(folder / "config.yaml")
                     ? CheckpointKind::kTraining
                     : CheckpointKind::kDreamZero;
    return add_archive(files, model);
  }
  if (const fs::path dit = file_or_index(folder, "diffusion_pytorch_model"); !dit.empty())
    return read_wan_base(files, dit);
  if (const fs::path rlinf =
          first_of(folder, {"full_weights.pt", "model_state_dict/full_weights.pt",
                            "actor/model_state_dict/full_weights.pt"});
      !rlinf.empty()) {
    files.kind = CheckpointKind::kRlinf;
    return add_archive(files, rlinf);
  }
  throw DataError({.where = folder.string(),
                   .what = "holds no checkpoint",
                   .expected =
                       "model.safetensors, diffusion_pytorch_model.safetensors (either may be in "
                       "shards with an .index.json), full_weights.pt or adapter_config.json",
                   .remedy = "Name the folder that holds one of these, or a single weights file."});
}

void find_tokenizer(CheckpointFiles& files) {
  const fs::path& folder = files.path;
  for (const char* place : {"google/umt5-xxl/spiece.model", "umt5-xxl/spiece.model",
                            "tokenizer/spiece.model", "spiece.model"}) {
    if (is_file(folder / place)) {
      files.tokenizer = folder / place;
      return;
    }
  }
}

}  // namespace

std::string_view name(CheckpointKind kind) {
  switch (kind) {
    case CheckpointKind::kTraining:
      return "training checkpoint of wam";
    case CheckpointKind::kDreamZero:
      return "DreamZero checkpoint";
    case CheckpointKind::kDreamZeroLora:
      return "DreamZero LoRA checkpoint";
    case CheckpointKind::kRlinf:
      return "RLinf full weights";
    case CheckpointKind::kPeftAdapter:
      return "PEFT LoRA adapter";
    case CheckpointKind::kWanBase:
      return "Wan base model";
    case CheckpointKind::kSingle:
      return "weights file";
  }
  return "";
}

double LoraInfo::scale() const {
  return alpha /
         (is_rank_stabilised ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
}

std::optional<ModelPart> recognise_part(const TensorArchive& archive) {
  // One name of each that no other has.
  const auto has = [&](const char* wanted) {
    return std::ranges::any_of(archive.names(), [&](const std::string& full) {
      const TensorName parsed = parse_tensor_name(full);
      return !parsed.has_part && parsed.name == wanted;
    });
  };
  if (has("blocks.0.self_attn.q.weight") || has("blocks.0.ffn.0.weight") ||
      has("action_encoder.W1.W"))
    return ModelPart::kDit;
  if (has("visual.patch_embedding.weight") || has("transformer.0.attn.to_qkv.weight"))
    return ModelPart::kClip;
  if (has("token_embedding.weight") && has("blocks.0.attn.q.weight")) return ModelPart::kText;
  if (has("encoder.conv1.weight") && has("conv1.weight")) return ModelPart::kVae;
  return std::nullopt;
}

CheckpointFiles find_checkpoint(const fs::path& path) {
  CheckpointFiles files{.path = path};
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    read_folder(files);
    find_tokenizer(files);
    return files;
  }
  if (!fs::exists(path, ignored)) {
    throw DataError({.where = path.string(),
                     .what = "no checkpoint of this name",
                     .remedy = "Name a folder under a run's checkpoints/, a downloaded model's "
                               "folder, or a weights file."});
  }
  files.kind =
      path.filename() == "full_weights.pt" ? CheckpointKind::kRlinf : CheckpointKind::kSingle;
  files.config_json = existing(path.parent_path() / "config.json");
  add_archive(files, path);
  return files;
}

}  // namespace wam
