// One forward pass of closed-loop inference: new video frames, and optionally a block's actions and
// state, attend to a cache of earlier keys and values and to each other, all without a mask (the
// state included, unlike in training). One graph for each cache length.
#pragma once

#include "wam/models/dit_block.h"

namespace wam {

struct DitInferShape {
  int64_t frames = 2;         // n: 1 for the first frame, 2 for a block
  int64_t first_frame = 1;    // position of the first of them
  int64_t cache_tokens = 0;   // rows of the cache that count
  int64_t cache_capacity = 0; // rows allocated: at least cache_tokens + new tokens
  bool with_actions = false;  // A actions and one state of block `block`
  int64_t block = 0;
  int64_t text_tokens = 512;  // as in DitTrainShape
};

// Inputs: latents st [1, n, h, w, C]; y st [1, n, h, w, Cy] (with y_channels); timesteps st [1, n + 1]
// (frames, then actions); context ft [1, Lt, text_dim]; clip ft [1, clip_tokens, clip_dim]; with
// actions: action st [1, A, action_dim], action_timesteps st [1, A], state st [1, 1, state_dim].
// States: "cache/<layer>" ft [1, capacity, 2 D], keys (rotated) then values, in region
// `cache_region`. The new tokens' rows are written behind the first `cache_tokens` rows; the caller
// counts the video rows in by asking for a longer cache next time.
struct DitInfer {
  ValueId video;   // st [1, n, h, w, C] velocity
  ValueId action;  // st [1, A, action_dim] velocity; invalid without actions
  int64_t new_tokens = 0;
};

DitInfer build_dit_infer(ParamUser& params, const DitConfig& config, const DitInferShape& shape,
                         const std::string& cache_region);

// Rows a cache needs for `frames` frames held and one block being denoised.
int64_t cache_capacity(const DitConfig& config, int64_t frames);

}  // namespace wam
