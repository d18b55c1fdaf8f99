// The training step's forward half: latents, actions, states and conditions in; losses out.
#pragma once

#include "wam/models/dit_block.h"
#include "wam/models/dit_layout.h"

namespace wam {

struct DitTrainShape {
  int64_t batch = 1;         // B
  // Lt, rows of the text condition. Below config.text_len, the last row stands for all padding rows
  // from there on: its score gets log(text_len + 1 - Lt), which equals their sum exactly.
  int64_t text_tokens = 512;
  TimestepLayout timesteps = TimestepLayout::kPerBlock;
  bool clean_context = true;  // as make_layout() has it
  bool sample_losses = false;
};

// Inputs the graph declares; st is the statistics type, ft the graph's floating type.
//   latents, noise   st [B, F, h, w, C]      y  st [B, F, h, w, Cy] (with y_channels)
//   action, action_noise, action_mask  st [B, K A, action_dim]  (mask times has_real_action)
//   state            st [B, K, state_dim]
//   timesteps, sigmas, weights  st [B, T], rows as DitLayout has them (row 0: 0, 0, 0)
//   frame_weights    st [B, F] loss weight of each latent frame, 0 where it is not to be learnt
//   action_timesteps st [B, K A]
//   context          ft [B, Lt, text_dim]    clip  ft [B, clip_tokens, clip_dim]
struct DitTrain {
  ValueId loss, dynamics_loss, action_loss;  // scalars, st
  // With shape.sample_losses [2 B] st: dynamics_loss of each sample, then action_loss of each; their
  // means are the losses above.
  ValueId sample_losses;
  ValueId video_pred;                        // [B, N, 4 C], channel-last patches, ft
  ValueId action_pred;                       // [B, K A, action_dim] ft
  DitLayout layout;
};

DitTrain build_dit_train(ParamUser& params, const DitConfig& config, const DitTrainShape& shape);

// What the timestep inputs hold for one sample: ids as drawn, rows as the layout has them.
// Throws InternalError if frames or actions that share a row have different ids.
struct TimestepRows {
  std::vector<float> timestep, sigma, weight;  // [T]
  std::vector<float> frame_weight;             // [F]
};
TimestepRows timestep_rows(const DitConfig& config, TimestepLayout layout,
                           std::span<const int32_t> video_ids, std::span<const int32_t> action_ids);

}  // namespace wam
