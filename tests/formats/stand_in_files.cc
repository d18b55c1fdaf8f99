#include "tests/formats/stand_in_files.h"

#include <algorithm>

#include "wam/base/files.h"
#include "wam/base/philox.h"
#include "wam/models/weights.h"
#include "wam/tensor/safetensors_writer.h"
#include "wam/tensor/torch_zip_fixture.h"

namespace wam::formats_test {
namespace {

namespace fs = std::filesystem;

// Small enough that every model is dealt to several files.
constexpr int64_t kShardBytes = 60'000;

constexpr const char* kConfig = R"(
model: {preset: custom, dim: 32, layers: 2, heads: 2, ffn_dim: 48, text_len: 16, action_dim: 4, state_dim: 4, coder_dim: 16, num_blocks: 2}
vae: {kind: wan22, dim: 4, latent_channels: 6}
text_encoder: {tokenizer: bytes, vocab: 40, dim: 16, ffn_dim: 24, heads: 2, layers: 2}
clip: {image_size: 28, patch_size: 14, dim: 16, heads: 2, layers: 2}
dataset: {embodiment: sim_table}
)";

Tensors values_of(const ParamSet& set, uint64_t seed) {
  Tensors tensors;
  initialise_weights(set, seed, [&](const Param&, const ParamPart& part, const HostTensor& value) {
    tensors[part.name] = value.to(DType::kBF16).to(DType::kF32);
  });
  return tensors;
}

HostTensor random_tensor(Random& random, const Shape& shape) {
  HostTensor tensor(DType::kF32, shape);
  for (float& value : tensor.as<float>())
    value = bf16_to_float(float_to_bf16(static_cast<float>(random.normal())));
  return tensor;
}

void write_shards(const fs::path& folder, const std::string& stem, const Tensors& tensors) {
  std::vector<NamedType> types;
  for (const auto& [name, tensor] : tensors) types.push_back({name, tensor.type()});
  write_safetensors_sharded(
      folder, stem, types, [&](const std::string& name) { return tensors.at(name); },
      {{"format", "pt"}}, kShardBytes);
}

Tensors operator+(Tensors a, const Tensors& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// The parts of the published files that no graph of ours reads.
Tensors vae_file(const StandIn& model) {
  return model.vae + Tensors{{"decoder.conv1.weight", HostTensor::zeros(DType::kF32, Shape{2, 2})},
                             {"conv2.weight", HostTensor::zeros(DType::kF32, Shape{2})}};
}
Tensors clip_file(const StandIn& model) {
  return with_prefix(
             model.clip +
                 Tensors{{"transformer.1.norm1.weight", HostTensor::zeros(DType::kF32, Shape{16})},
                         {"post_norm.weight", HostTensor::zeros(DType::kF32, Shape{16})},
                         {"head", HostTensor::zeros(DType::kF32, Shape{16, 4})}},
             "visual.") +
         Tensors{{"log_scale", HostTensor::zeros(DType::kF32, Shape{})},
                 {"textual.token_embedding.weight", HostTensor::zeros(DType::kF32, Shape{3, 2})}};
}

bool is_coder(const std::string& name) {
  return name.starts_with("action_") || name.starts_with("state_");
}

std::string module_of(const std::string& weight) { return weight.substr(0, weight.size() - 7); }

void write_config(const fs::path& folder, const Lora* lora) {
  const std::string factors = lora == nullptr
                                  ? R"("train_architecture": "full")"
                                  : R"("train_architecture": "lora", "lora_rank": )" +
                                        std::to_string(lora->rank) + R"(, "lora_alpha": )" +
                                        std::to_string(lora->alpha);
  write_file_atomic(folder / "config.json",
                    R"({"model_type": "vla", "action_head_cfg": {"config": {)" + factors + "}}}");
  fs::create_directories(folder / "experiment_cfg");
  write_file_atomic(folder / "experiment_cfg" / "metadata.json", "{}");
}

}  // namespace

StandIn::StandIn(uint64_t seed)
    : config(train::parse_config(kConfig, {}, "stand-in")), plan(train::plan_run(config, {})) {
  dit = values_of(*plan.step.params, seed);
  vae = values_of(*plan.encoders.vae, seed);
  text = values_of(*plan.encoders.text, seed);
  clip = values_of(*plan.encoders.clip, seed);
}

Lora make_lora(const Tensors& dit, uint64_t seed) {
  Lora lora;
  Random random(seed, RandomUse::kTest, 0, 0);
  const std::string endings[] = {".q.weight", ".k.weight",     ".v.weight",
                                 ".o.weight", ".ffn.0.weight", ".ffn.2.weight"};
  for (const auto& [name, tensor] : dit) {
    const bool is_target =
        std::ranges::any_of(endings, [&](const std::string& e) { return name.ends_with(e); });
    if (!is_target || !name.starts_with("blocks.")) continue;
    lora.a[name] = random_tensor(random, Shape{lora.rank, tensor.shape()[1]});
    lora.b[name] = random_tensor(random, Shape{tensor.shape()[0], lora.rank});
  }
  return lora;
}

Tensors merged(const Tensors& dit, const Lora& lora) {
  Tensors result = dit;
  const double scale = lora.alpha / static_cast<double>(lora.rank);
  for (const auto& [name, a] : lora.a) {
    HostTensor sum = dit.at(name).clone();
    const HostTensor& b = lora.b.at(name);
    const int64_t rows = b.shape()[0], columns = a.shape()[1];
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double delta = 0;
        for (int64_t r = 0; r < lora.rank; ++r) {
          delta += double{b.as<float>()[static_cast<size_t>(i * lora.rank + r)]} *
                   double{a.as<float>()[static_cast<size_t>(r * columns + j)]};
        }
        sum.as<float>()[static_cast<size_t>(i * columns + j)] += static_cast<float>(scale * delta);
      }
    }
    result[name] = sum;
  }
  return result;
}

Tensors to(const Tensors& tensors, DType dtype) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) result[name] = tensor.to(dtype);
  return result;
}

Tensors with_prefix(const Tensors& tensors, const std::string& prefix) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) result[prefix + name] = tensor;
  return result;
}

void write_wan_base(const fs::path& folder, const StandIn& model) {
  fs::create_directories(folder / "google" / "umt5-xxl");
  Tensors dit;
  for (const auto& [name, tensor] : model.dit) {
    const auto gaps = base_checkpoint_gaps();
    if (std::ranges::none_of(
            gaps, [&](const std::string& gap) { return name.find(gap) != std::string::npos; }))
      dit[name] = tensor.to(DType::kBF16);
  }
  write_shards(folder, "diffusion_pytorch_model", dit);
  write_torch_zip(folder / "Wan2.2_VAE.pth", vae_file(model));
  write_torch_zip(folder / "models_t5_umt5-xxl-enc-bf16.pth", to(model.text, DType::kBF16));
  write_torch_zip(folder / "models_clip_open-clip-xlm-roberta-large-vit-huge-14.pth",
                  to(clip_file(model), DType::kF16));
  write_file_atomic(folder / "google" / "umt5-xxl" / "spiece.model", "stand-in");
}

void write_dreamzero(const fs::path& folder, const StandIn& model, const Lora* lora) {
  fs::create_directories(folder);
  Tensors all = with_prefix(vae_file(model), "action_head.vae.model.") +
                with_prefix(model.text, "action_head.text_encoder.") +
                with_prefix(clip_file(model), "action_head.image_encoder.model.");
  all.erase("action_head.image_encoder.model.textual.token_embedding.weight");
  if (lora == nullptr) {
    all = all + with_prefix(model.dit, "action_head.model.");
  } else {
    const std::string prefix = "action_head.model.base_model.model.";
    for (const auto& [name, tensor] : model.dit) {
      const bool is_linear =
          lora->a.contains(name) || (name.ends_with(".bias") &&
                                     lora->a.contains(name.substr(0, name.size() - 5) + ".weight"));
      const size_t leaf = name.rfind('.');
      all[prefix + (is_linear ? name.substr(0, leaf) + ".base_layer" + name.substr(leaf) : name)] =
          tensor;
    }
    for (const auto& [name, a] : lora->a) {
      all[prefix + module_of(name) + ".lora_A.default.weight"] = a;
      all[prefix + module_of(name) + ".lora_B.default.weight"] = lora->b.at(name);
    }
  }
  write_shards(folder, "model", to(all, DType::kBF16));
  write_config(folder, lora);
}

void write_dreamzero_lora(const fs::path& folder, const StandIn& model, const Lora& lora,
                          const std::map<std::string, std::string>& metadata) {
  fs::create_directories(folder);
  const std::string prefix = "action_head.model.base_model.model.";
  Tensors all;
  for (const auto& [name, a] : lora.a) {
    all[prefix + module_of(name) + ".lora_A.default.weight"] = a;
    all[prefix + module_of(name) + ".lora_B.default.weight"] = lora.b.at(name);
  }
  for (const auto& [name, tensor] : model.dit) {
    if (is_coder(name)) all[prefix + name] = tensor;
  }
  write_safetensors(folder / "model.safetensors", all, metadata);
  write_config(folder, &lora);
}

void write_training(const fs::path& folder, const StandIn& model, const Tensors* ema) {
  fs::create_directories(folder);
  write_safetensors(folder / "model.safetensors", model.dit, {{"format", "pt"}});
  if (ema != nullptr) write_safetensors(folder / "ema.safetensors", *ema, {{"format", "pt"}});
  write_file_atomic(folder / "config.yaml", train::to_yaml(model.config));
  write_file_atomic(folder / "metadata.json", "{}");
  write_file_atomic(folder / "trainer_state.json", "{}");
}

void write_rlinf(const fs::path& folder, const StandIn& model) {
  fs::create_directories(folder / "actor" / "model_state_dict");
  write_torch_zip(folder / "actor" / "model_state_dict" / "full_weights.pt",
                  with_prefix(model.dit, "action_head.model.") +
                      with_prefix(model.text, "action_head.text_encoder.") +
                      with_prefix(vae_file(model), "action_head.vae.model.") +
                      with_prefix(clip_file(model), "action_head.image_encoder.model."));
}

std::string peft_config(const Lora& lora, const std::string& more) {
  return R"({"peft_type": "LORA", "r": )" + std::to_string(lora.rank) + R"(, "lora_alpha": )" +
         std::to_string(lora.alpha) +
         R"(, "target_modules": ["q", "k", "v", "o", "ffn.0", "ffn.2"])" + more + "}";
}

void write_peft(const fs::path& folder, const Lora& lora, const std::string& config) {
  fs::create_directories(folder);
  Tensors all;
  for (const auto& [name, a] : lora.a) {
    all["base_model.model." + module_of(name) + ".lora_A.weight"] = a;
    all["base_model.model." + module_of(name) + ".lora_B.weight"] = lora.b.at(name);
  }
  write_safetensors(folder / "adapter_model.safetensors", all, {{"format", "pt"}});
  write_file_atomic(folder / "adapter_config.json", config.empty() ? peft_config(lora) : config);
}

}  // namespace wam::formats_test
