#include "wam/formats/tensor_name.h"

#include "wam/base/check.h"

namespace wam {
namespace {

bool cut_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// What torch's data parallelism and compiler put in front of names.
void cut_wrappers(std::string_view& text) {
  while (cut_prefix(text, "module.") || cut_prefix(text, "_orig_mod.") ||
         cut_prefix(text, "_fsdp_wrapped_module.")) {
  }
}

void erase_first(std::string& text, std::string_view piece) {
  const size_t at = text.find(piece);
  if (at != std::string::npos) text.erase(at, piece.size());
}

// "X.lora_A.default.weight" or "X.lora_A.weight" -> "X.weight".
LoraFactor cut_factor(std::string& name) {
  for (const auto& [marker, factor] :
       {std::pair{std::string_view(".lora_A"), LoraFactor::kA}, {".lora_B", LoraFactor::kB}}) {
    for (const std::string_view adapter : {".default.weight", ".weight"}) {
      const std::string ending = std::string(marker) + std::string(adapter);
      if (!name.ends_with(ending)) continue;
      name.resize(name.size() - ending.size());
      name += ".weight";
      return factor;
    }
  }
  return LoraFactor::kNone;
}

}  // namespace

std::string_view name(ModelPart part) {
  switch (part) {
    case ModelPart::kDit:
      return "transformer";
    case ModelPart::kVae:
      return "vae";
    case ModelPart::kText:
      return "text encoder";
    case ModelPart::kClip:
      return "clip";
  }
  return "";
}

std::string_view dreamzero_prefix(ModelPart part) {
  switch (part) {
    case ModelPart::kDit:
      return "action_head.model.";
    case ModelPart::kVae:
      return "action_head.vae.model.";
    case ModelPart::kText:
      return "action_head.text_encoder.";
    case ModelPart::kClip:
      return "action_head.image_encoder.model.";
  }
  return "";
}

TensorName parse_tensor_name(std::string_view text) {
  TensorName result;
  cut_wrappers(text);
  for (const ModelPart part : kModelParts) {
    if (!cut_prefix(text, dreamzero_prefix(part))) continue;
    result.has_part = true;
    result.part = part;
    break;
  }
  cut_wrappers(text);
  cut_prefix(text, "base_model.model.");
  result.name = text;
  erase_first(result.name, ".base_layer");
  result.lora = cut_factor(result.name);
  return result;
}

std::string dreamzero_lora_name(const std::string& name, LoraFactor factor) {
  constexpr std::string_view kEnding = ".weight";
  WAM_CHECK(factor != LoraFactor::kNone && name.ends_with(kEnding)) << name;
  const std::string module = name.substr(0, name.size() - kEnding.size());
  return std::string(dreamzero_prefix(ModelPart::kDit)) + "base_model.model." + module +
         (factor == LoraFactor::kA ? ".lora_A" : ".lora_B") + ".default.weight";
}

}  // namespace wam
