// For tests: small models in the exact file layouts of public checkpoints, torch-zip files
// included.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "wam/train/run_plan.h"

namespace wam::formats_test {

using Tensors = std::map<std::string, HostTensor>;

// A config of small sizes, and one model made for it: float32 values that bf16 holds exactly, under
// the names of Wan's own files.
struct StandIn {
  explicit StandIn(uint64_t seed = 1);
  train::TrainConfig config;
  train::RunPlan plan;
  Tensors dit, vae, text, clip;
};

struct Lora {
  int64_t rank = 2;
  double alpha = 4;
  Tensors a, b;  // by the name of the weight they change
};
// Factors for q, k, v, o, ffn.0 and ffn.2 of every block, the reference's default targets.
Lora make_lora(const Tensors& dit, uint64_t seed = 3);
// base + alpha / rank * B A in float32.
Tensors merged(const Tensors& dit, const Lora& lora);

Tensors to(const Tensors& tensors, DType dtype);
Tensors with_prefix(const Tensors& tensors, const std::string& prefix);

// diffusion_pytorch_model-0000i-of-0000n.safetensors without what a base lacks, .pth files,
// tokenizer.
void write_wan_base(const std::filesystem::path& folder, const StandIn& model);
// model-0000i-of-0000n.safetensors, config.json, experiment_cfg/metadata.json.
void write_dreamzero(const std::filesystem::path& folder, const StandIn& model,
                     const Lora* lora = nullptr);
// model.safetensors with factors and coders alone.
void write_dreamzero_lora(const std::filesystem::path& folder, const StandIn& model,
                          const Lora& lora,
                          const std::map<std::string, std::string>& metadata = {});
// model.safetensors, config.yaml and so on, as wam train writes them; with the average where given.
void write_training(const std::filesystem::path& folder, const StandIn& model,
                    const Tensors* ema = nullptr);
// actor/model_state_dict/full_weights.pt.
void write_rlinf(const std::filesystem::path& folder, const StandIn& model);
// adapter_config.json (`config` replaces it), adapter_model.safetensors.
void write_peft(const std::filesystem::path& folder, const Lora& lora,
                const std::string& config = "");
std::string peft_config(const Lora& lora, const std::string& more = "");

}  // namespace wam::formats_test
