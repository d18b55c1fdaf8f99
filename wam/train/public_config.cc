#include "wam/train/public_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "wam/train/run_plan.h"

namespace wam::train {
namespace {

using nlohmann::json;

constexpr const char* kModule = "groot.vla.model.dreamzero.";

json component(const std::string& target, const char* path_key) {
  return {{"_target_", kModule + target}, {"_convert_", "object"}, {path_key, nullptr}};
}

json diffusion_json(const DitConfig& d) {
  return {{"_target_",
           std::string(kModule) + "modules.wan_video_dit_action_casual_chunk.CausalWanModel"},
          {"_convert_", "object"},
          {"diffusion_model_pretrained_path", nullptr},
          {"model_type", d.has_y() ? "i2v" : "ti2v"},
          {"dim", d.dim},
          {"in_dim", d.latent_channels + d.y_channels},
          {"out_dim", d.latent_channels},
          {"ffn_dim", d.ffn_dim},
          {"freq_dim", d.freq_dim},
          {"eps", 1e-6},
          {"num_heads", d.heads},
          {"num_layers", d.layers},
          {"frame_seqlen", d.tokens_per_frame()},
          {"max_chunk_size", d.max_chunk_size > 0 ? d.max_chunk_size : d.num_blocks},
          {"num_frame_per_block", 2},
          {"num_action_per_block", d.actions_per_block},
          {"num_state_per_block", 1}};
}

}  // namespace

std::string public_model_json(const TrainConfig& config, const PublicLora& lora) {
  const DitConfig d = resolve_model(config);
  json head = {{"_target_", std::string(kModule) +
                                "action_head.wan_flow_matching_action_tf.WANPolicyHeadConfig"},
               {"action_dim", d.action_dim},
               {"max_action_dim", d.action_dim},
               {"max_state_dim", d.state_dim},
               {"action_horizon", d.actions_per_block},
               {"hidden_size", d.coder_dim},
               {"num_frames", 8 * d.num_blocks + 1},
               {"num_frame_per_block", 2},
               {"tiled", false},
               {"tune_projector", true},
               {"tune_diffusion_model", true},
               {"model_dtype", "float32"},
               {"skip_component_loading", true},
               {"train_architecture", lora.rank > 0 ? "lora" : "full"},
               {"diffusion_model_cfg", diffusion_json(d)},
               {"text_encoder_cfg", component("modules.wan_video_text_encoder.WanTextEncoder",
                                              "text_encoder_pretrained_path")},
               {"image_encoder_cfg", component("modules.wan_video_image_encoder.WanImageEncoder",
                                               "image_encoder_pretrained_path")},
               {"vae_cfg", component(d.latent_channels == 48 ? "modules.wan_video_vae.WanVideoVAE38"
                                                             : "modules.wan_video_vae.WanVideoVAE",
                                     "vae_pretrained_path")}};
  if (lora.rank > 0) {
    head["lora_rank"] = lora.rank;
    head["lora_alpha"] = lora.alpha;
    head["lora_target_modules"] = "q,k,v,o,ffn.0,ffn.2";
  }
  const json j = {
      {"model_type", "vla"},
      {"architectures", json::array({"VLA"})},
      {"action_dim", d.action_dim},
      {"action_horizon", d.actions_per_block},
      {"compute_dtype", "bfloat16"},
      {"torch_dtype", "float32"},
      {"backbone_cfg", {{"_target_", std::string(kModule) + "backbone.identity.IdentityBackbone"}}},
      {"action_head_cfg",
       {{"_target_",
         std::string(kModule) + "action_head.wan_flow_matching_action_tf.WANPolicyHead"},
        {"_convert_", "object"},
        {"config", head}}}};
  return j.dump(2) + "\n";
}

}  // namespace wam::train
