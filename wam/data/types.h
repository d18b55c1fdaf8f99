// What travels through the data pipeline. Letters: B batch, K blocks, A actions per block,
// T = 8K+1 camera frames, N views, H x W the tiled picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam::data {

// Identifies a drawn window: enough to draw it again and to name it in an error.
struct SampleId {
  int64_t dataset = 0;        // place in the config's list of datasets
  int64_t episode_index = 0;  // as in the dataset's meta
  int64_t first_anchor = 0;   // row in the episode
  int64_t attempt = 0;        // how many draws were rejected before this one
};

// Rows of one episode that a sample uses; made by the sampler from lengths and language alone.
struct Window {
  SampleId id;
  std::vector<int64_t> frame_rows;    // [8K+1] ascending
  std::vector<int64_t> action_rows;   // [K*A]
  std::vector<int64_t> state_rows;    // [K]
  std::vector<uint8_t> action_valid;  // [K*A]; 0 where the row repeats the episode's last
  std::vector<uint8_t> frame_valid;   // [8K+1]; likewise
};

// One training sample after all transforms, ready to be stacked.
struct Sample {
  SampleId id;
  HostTensor video;        // [T, H, W, 3] u8, tiled
  HostTensor action;       // [K*A, action_dim] f32, normalised, zero padded
  HostTensor action_mask;  // [K*A, action_dim] f32, 1 where a real value is
  HostTensor state;        // [K, state_dim] f32, normalised, zero padded
  float has_real_action = 1;
  HostTensor video_mask;  // [2K+1] f32, per latent frame: 0 where a camera frame of it repeats the
                          // episode's last (fixed_window only), to be left out of the loss
  std::string prompt;     // templated and cleaned
  std::vector<int32_t> token_ids;  // with EOS, not padded
};

// B samples of one micro-batch.
struct Batch {
  int64_t step = 0;         // optimizer step it belongs to
  int64_t first_index = 0;  // place of its first sample in the step's global batch
  std::vector<SampleId> ids;
  HostTensor video;            // [B, T, H, W, 3] u8
  HostTensor action;           // [B, K*A, action_dim] f32
  HostTensor action_mask;      // [B, K*A, action_dim] f32
  HostTensor has_real_action;  // [B] f32
  HostTensor state;            // [B, K, state_dim] f32
  HostTensor video_mask;       // [B, 2K+1] f32
  std::vector<std::string> prompts;
  std::vector<std::vector<int32_t>> token_ids;
};

}  // namespace wam::data
