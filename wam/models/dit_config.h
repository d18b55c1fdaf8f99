// Sizes of the DreamZero diffusion transformer and of its token sequence.
// Letters: B batch, F = 2K + 1 latent frames, S tokens a frame, N = F * S, K blocks, A actions a
// block, D width, H heads, d = D / H.
#pragma once

#include <cstdint>
#include <string>

namespace wam {

struct DitConfig {
  int64_t dim = 3072;        // D
  int64_t layers = 30;
  int64_t heads = 24;        // H
  int64_t ffn_dim = 14336;
  int64_t freq_dim = 256;    // width of the time sinusoid
  int64_t text_dim = 4096;
  int64_t text_len = 512;    // padded prompt length the softmax sees
  int64_t clip_dim = 1280;
  int64_t clip_tokens = 257;
  int64_t latent_channels = 48;  // C: channels of the latents and of the prediction
  int64_t y_channels = 0;        // channels of the first-frame condition `y`; 0: none
  int64_t action_dim = 32;
  int64_t state_dim = 64;
  int64_t coder_dim = 1024;      // hidden width of state encoder and action decoder
  int64_t num_blocks = 4;        // K
  int64_t actions_per_block = 24;  // A
  int64_t latent_height = 10, latent_width = 20;
  int64_t max_chunk_size = -1;   // window of the clean rows in blocks; -1: none

  int64_t head_dim() const { return dim / heads; }
  int64_t num_frames() const { return 2 * num_blocks + 1; }
  int64_t tokens_per_frame() const { return (latent_height / 2) * (latent_width / 2); }
  int64_t clean_tokens() const { return num_frames() * tokens_per_frame(); }
  int64_t num_actions() const { return num_blocks * actions_per_block; }
  int64_t sequence_length() const { return 2 * clean_tokens() + num_actions() + num_blocks; }
  bool has_y() const { return y_channels > 0; }
};

// The published models at their published picture sizes.
DitConfig dit_5b();
DitConfig dit_14b();

// Throws ConfigError: sizes that are not positive, heads that do not divide the width, an odd head
// width, a latent smaller than a patch.
void check(const DitConfig& config);

}  // namespace wam
