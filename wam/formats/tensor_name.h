// Names of tensors in public checkpoints, taken apart. One tensor of the transformer is spelled
//   blocks.0.self_attn.q.weight                                        Wan's own files, ours
//   action_head.model.blocks.0.self_attn.q.weight                      DreamZero, RLinf
//   action_head.model.base_model.model.blocks.0.self_attn.q.base_layer.weight    the same with LoRA
// and the two factors of its LoRA
//   base_model.model.blocks.0.self_attn.q.lora_A.weight                PEFT adapter
//   action_head.model.base_model.model.blocks.0.self_attn.q.lora_A.default.weight    DreamZero
// Sources: dreamzero0/dreamzero groot/vla/model/dreamzero/base_vla.py, huggingface/peft.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wam {

enum class ModelPart : uint8_t { kDit, kVae, kText, kClip };
inline constexpr ModelPart kModelParts[] = {ModelPart::kDit, ModelPart::kVae, ModelPart::kText,
                                            ModelPart::kClip};
std::string_view name(ModelPart part);  // "transformer", "vae", "text encoder", "clip"

enum class LoraFactor : uint8_t { kNone, kA, kB };

struct TensorName {
  std::string name;  // "blocks.0.self_attn.q.weight", of a factor the tensor that it changes
  LoraFactor lora = LoraFactor::kNone;
  bool has_part = false;  // an `action_head.` prefix says which model it belongs to
  ModelPart part = ModelPart::kDit;
};

TensorName parse_tensor_name(std::string_view public_name);

// "action_head.model." and so on: where a DreamZero checkpoint keeps the part. CLIP's vision tower
// lies below it under "visual.".
std::string_view dreamzero_prefix(ModelPart part);
// "action_head.model.base_model.model.blocks.0.self_attn.q.lora_A.default.weight" of that tensor.
std::string dreamzero_lora_name(const std::string& name, LoraFactor factor);

}  // namespace wam
