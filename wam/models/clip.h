// The CLIP vision tower as a graph.
#pragma once

#include "wam/models/params.h"

namespace wam {

struct ClipConfig {
  int64_t image_size = 224;
  int64_t patch_size = 14;
  int64_t dim = 1280;
  int64_t mlp_ratio = 4;
  int64_t heads = 16;
  int64_t layers = 32;  // in checkpoints; the last one is not used

  int64_t patches_per_side() const { return image_size / patch_size; }
  int64_t tokens() const { return 1 + patches_per_side() * patches_per_side(); }  // 257
};

// ViT-H/14 of open-clip xlm-roberta-large-vit-huge-14.
inline ClipConfig clip_vit_h() { return {}; }
// Throws ConfigError for sizes that are not positive or do not divide.
void check(const ClipConfig& config);

// Pictures st [B, H, W, 3] in [-1, 1] -> pixels st [B, image_size, image_size, 3]: bicubic resize
// (a = -0.75, no antialias), to [0, 1], minus CLIP's mean, over its standard deviation.
ValueId clip_preprocess(Builder& b, const ClipConfig& config, ValueId pictures);
// Pixels st -> tokens [B, tokens(), dim] ft after all blocks but the last, without a final norm;
// the class token comes first.
ValueId build_clip(ParamUser& params, const ClipConfig& config, ValueId pixels);

}  // namespace wam
