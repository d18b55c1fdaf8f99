// Wan autoencoders as graphs. The bits of a clip's latents depend neither on threads nor on the
// other clips of its batch, but may depend on the batch size and the clip length, because matrix
// products of few rows round by their number: where cached and fresh latents must be equal, encode
// both in batches of one size. st is the statistics type (f32, or f64 in f64 graphs).
#pragma once

#include "wam/models/params.h"
#include "wam/models/vae_config.h"

namespace wam {

// video st [B, T, H, W, 3] in [-1, 1] -> latents st [B, F, h, w, z]: the mean, normalised per
// channel (no sampling). T, H, W as check_clip() demands. ConfigError otherwise.
ValueId vae_encode(ParamUser& params, const VaeConfig& config, ValueId video);

// Latents as vae_encode() gives them -> video st [B, T, H, W, 3], not clamped.
ValueId vae_decode(ParamUser& params, const VaeConfig& config, ValueId latents);

// The first-frame condition `y` of the image-to-video transformer: 4 mask channels, 1 at latent
// frame 0 and 0 elsewhere, then the latents of (first frame, then frames - 1 mid-grey ones). first
// st [B, 1, H, W, 3] -> st [B, F, h, w, 4 + z].
inline constexpr int64_t kConditionMaskChannels = 4;
ValueId vae_first_frame_condition(ParamUser& params, const VaeConfig& config, ValueId first,
                                  int64_t frames);

// Camera frames to what the encoders read: u8 [B, T, H, W, 3] -> st [B, T, height, width, 3] in
// [-1, 1], resized bilinearly without antialias where the size differs.
ValueId frames_to_video(Builder& b, ValueId frames, int64_t height, int64_t width,
                        DType dtype = DType::kF32);

}  // namespace wam
