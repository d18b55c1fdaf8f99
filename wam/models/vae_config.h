// Sizes of the Wan video autoencoders.
#pragma once

#include <cstdint>
#include <vector>

namespace wam {

enum class VaeKind : uint8_t {
  kWan21,  // stages of residual blocks in one list; 3 channels in
  kWan22,  // 2x2 pixels folded into channels, averaging and duplicating shortcuts around stages
};

struct VaeConfig {
  VaeKind kind = VaeKind::kWan22;
  int64_t dim = 160;                             // width of the encoder's first stage
  int64_t dec_dim = 256;                         // of the decoder's last; Wan2.1: equal to dim
  int64_t z_dim = 48;                            // latent channels
  std::vector<int64_t> dim_mult = {1, 2, 4, 4};  // width of each stage in units of dim
  int64_t num_res_blocks = 2;                    // a stage of the encoder; the decoder has one more
  // Which of the down-samplings after the stages but the last also halve time.
  std::vector<bool> temporal_downsample = {false, true, true};
  // Per-channel mean and standard deviation of raw latents [z_dim]; empty: 0 and 1.
  std::vector<double> mean, std;

  int64_t patch() const { return kind == VaeKind::kWan22 ? 2 : 1; }
  // Pixels a latent pixel covers along height and width.
  int64_t spatial_stride() const;
  // Frames a latent frame covers, the first frame apart.
  int64_t temporal_stride() const;
  // Latent frames of a clip of `frames`.
  int64_t latent_frames(int64_t frames) const { return (frames - 1) / temporal_stride() + 1; }
};

// The published autoencoders with their published normalisation.
VaeConfig vae_wan21();  // dim 96, z 16, stride 8
VaeConfig vae_wan22();  // dim 160, dec_dim 256, z 48, stride 16

// Throws ConfigError for sizes that are not positive, lists of other lengths, a std that is not
// positive, or widths that the shortcuts cannot average or duplicate evenly.
void check(const VaeConfig& config);
// Throws ConfigError if a clip of this size cannot be encoded: frames other than 1 plus a multiple
// of the temporal stride, sides that the spatial stride does not divide.
void check_clip(const VaeConfig& config, int64_t frames, int64_t height, int64_t width);

}  // namespace wam
