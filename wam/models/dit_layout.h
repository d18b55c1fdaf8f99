// Where every token of the training sequence stands, which timestep it has, which position it is
// rotated by, and whom it attends to.
//
// The public order is [clean video N][noisy video N][actions K A][states K]. Inside the transformer
// a block's tokens stand together, so that its keys are two ranges:
//   [clean video N][noisy frame 0][noisy block 0, actions 0, state 0][noisy block 1, ...] ...
#pragma once

#include <vector>

#include "wam/models/dit_config.h"
#include "wam/tensor/attention_rects.h"
#include "wam/tensor/host_tensor.h"

namespace wam {

// Which tokens share a row of the modulation table.
enum class TimestepLayout : uint8_t {
  kPerBlock,   // rows: clean, frame 0, block 0.. K-1: 2 + K (the objective's default)
  kPerAction,  // and one for each action: 2 + K + K A (decoupled noise)
  kPerFrame,   // clean, each frame, each action: 1 + F + K A (anything)
  kPerToken,   // one for each token, L: no sharing at all, to show what sharing saves
};

struct DitLayout {
  int64_t length = 0;                  // L
  int64_t num_rows = 0;                // T distinct timesteps
  std::vector<int32_t> public_row;     // [L] place in the public order of internal token l
  std::vector<int32_t> timestep_row;   // [L] row of the table, internal order
  std::vector<int32_t> noisy_tokens;   // [N] internal places of the noisy video, frame by frame
  std::vector<int32_t> action_tokens;  // [K A] internal places
  std::vector<int32_t> video_rows;     // [N] rows of the table of the noisy video
  std::vector<int32_t> action_rows;    // [K A]
  std::vector<AttentionRect> rects;    // internal order
};

// Without clean_context no noisy or action token sees a clean frame: a control, to show what the
// model makes of the past.
DitLayout make_layout(const DitConfig& config, TimestepLayout timesteps, bool clean_context = true);

// T, rows of the modulation table.
int64_t num_timestep_rows(const DitConfig& config, TimestepLayout timesteps);
// Row of the table that holds the timestep of video frame f / of action i: of any of its tokens'
// with kPerToken.
int64_t frame_row(const DitConfig& config, TimestepLayout timesteps, int64_t frame);
int64_t action_row(const DitConfig& config, TimestepLayout timesteps, int64_t action);

// One rotated token: a video token has three positions, an action or state token one.
struct RopePosition {
  bool video = true;
  int64_t frame = 0, row = 0, column = 0;  // video
  int64_t index = 0;                       // action or state
};

// [positions, d/2, 2] cosines and sines of type `dtype` (f32 or f64), angles in float64:
// video channels split into (frame, row, column) = (d - 4 (d/6), 2 (d/6), 2 (d/6)), theta 10000,
// each part's frequencies by its own width; others use the whole width.
HostTensor rope_table(const std::vector<RopePosition>& positions, int64_t head_dim, DType dtype);
// Positions of the training sequence in internal order.
std::vector<RopePosition> train_positions(const DitConfig& config, const DitLayout& layout);

}  // namespace wam
