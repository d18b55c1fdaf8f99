// A run's config made whole: model sizes that follow from encoders, picture and embodiment, every
// program lowered, and the memory all of them need together. Needs no device and no dataset.
#pragma once

#include <memory>
#include <string>

#include "wam/models/clip.h"
#include "wam/models/umt5.h"
#include "wam/models/vae.h"
#include "wam/plan/memory_plan.h"
#include "wam/train/config.h"
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
//   pictures: frames u8 [b, T, h, w, 3] -> latents f32 [b, F, lh, lw, z], clip f32 [b, tokens, dim],
//             y f32 [b, F, lh, lw, 4 + z] where the model wants it; b = vae.sub_batch
//   prompt:   ids i32 [1, L], mask f32 [1, L] -> prompt f32 [1, L, dim]
struct EncoderPrograms {
  std::shared_ptr<ParamSet> vae, clip, text;
  Program pictures, prompt;
};
// `vae` may carry measured mean and std.
EncoderPrograms build_encoders(const TrainConfig& config, const DitConfig& model, const VaeConfig& vae,
                               const Target& target);

struct RunPlan {
  DitConfig model;
  StepPrograms step;
  EncoderPrograms encoders;
  MemoryPlan memory;
  std::vector<const Program*> programs() const;
};

// `prompt_tokens`: rows of the text condition; 0 takes the config's, or text_len.
RunPlan plan_run(const TrainConfig& config, const Target& target, int64_t prompt_tokens = 0);
// The table `wam plan` prints.
std::string describe(const RunPlan& plan);

}  // namespace wam::train
