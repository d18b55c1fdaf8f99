// A run's config made whole: model sizes that follow from encoders, picture and embodiment, every
// program lowered, and the memory all of them need together. Needs no device and no dataset.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "wam/models/clip.h"
#include "wam/models/umt5.h"
#include "wam/models/vae.h"
#include "wam/plan/memory_plan.h"
#include "wam/train/config.h"
#include "wam/train/fit.h"
#include "wam/train/step.h"

namespace wam::train {

// Regions of the encoders' inputs.
inline constexpr const char* kEncoderInputs = "inputs.encoders";

// Encoder configs with 0 replaced by the published sizes.
VaeConfig vae_config(const VaeSection& section);
Umt5Config umt5_config(const TextSection& section);
ClipConfig clip_config(const ClipSection& section);

// The DiT's sizes for this run. Throws ConfigError where picture, encoders and model do not fit.
DitConfig resolve_model(const TrainConfig& config);
StepOptions step_options(const TrainConfig& config, const DitConfig& model, int64_t prompt_tokens);

// Frozen encoders as programs over one micro-batch.
//   pictures: frames u8 [b, T, h, w, 3] -> latents f32 [b, F, lh, lw, z], clip ft [b, tokens, dim],
//             y f32 [b, F, lh, lw, 4 + z] where the model wants it; b = vae.sub_batch
//   prompt:   ids i32 [1, L], mask f32 [1, L] -> prompt ft [1, L, dim]
struct EncoderPrograms {
  std::shared_ptr<ParamSet> vae, clip, text;
  Program pictures, prompt;
};
struct EncoderTypes {
  DType compute = DType::kF32;  // of weights and activations
  DType out = DType::kF32;      // ft
};
// `vae` may carry measured mean and std.
EncoderPrograms build_encoders(const TrainConfig& config, const DitConfig& model, const VaeConfig& vae,
                               const Target& target, const EncoderTypes& types = {});
// For the step of this run: bf16 on a GPU only, whatever the step is fed with.
EncoderTypes encoder_types(const TrainConfig& config);

struct RunPlan {
  DitConfig model;
  StepPrograms step;
  EncoderPrograms encoders;
  bool encoders_apart = false;  // on a device of their own
  MemoryPlan memory;            // of the step's device
  MemoryPlan encoder_memory;    // of the encoders' own; empty if they are not apart
  std::vector<const Program*> programs() const;
};

// Where a run is planned for.
struct PlanSite {
  // Of the step's device: decides what `recompute: auto` keeps, and a plan beyond it is refused.
  // Without one nothing is refused, and `auto` needs its own budget.
  std::optional<MemoryLimit> limit;
  // Rows of the text condition; 0 takes the config's, or text_len.
  int64_t prompt_tokens = 0;
};
// Programs are lowered for the config's devices, which need not be there.
RunPlan plan_run(const TrainConfig& config, const PlanSite& site = {});
// The table `wam plan` prints.
std::string describe(const RunPlan& plan);

// Device of the frozen encoders.
const std::string& encoder_device(const TrainConfig& config);

}  // namespace wam::train
