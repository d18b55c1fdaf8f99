// Small frozen encoders for the built-in world, demos and tests: the published architectures with
// small sizes, initialised from a seed (initialise_weights()).
#pragma once

#include <span>
#include <vector>

#include "wam/models/clip.h"
#include "wam/models/umt5.h"
#include "wam/models/vae_config.h"
#include "wam/tensor/host_tensor.h"

namespace wam {

// Wan2.2 kind: stride 16, 4 frames a latent. Its normalisation is empty: measure it with
// LatentStatistics and store it beside the seed.
VaeConfig stand_in_vae(int64_t dim = 8, int64_t z_dim = 8);
Umt5Config stand_in_umt5(int64_t vocab, int64_t dim = 64);
ClipConfig stand_in_clip(int64_t dim = 64);

// Mean and standard deviation per channel (the last dim) over any number of latents, in float64 and
// in the order given.
class LatentStatistics {
 public:
  // f32 [..., z]; all calls with the same z.
  void add(const HostTensor& latents);
  int64_t count() const { return count_; }  // values a channel
  std::vector<double> mean() const;
  // Biased (over count), at least kSmallestStd: a constant channel stays a constant.
  std::vector<double> std() const;
  static constexpr double kSmallestStd = 1e-6;

 private:
  int64_t count_ = 0;
  std::vector<double> mean_, square_;  // running mean and sum of squared deviations (Welford)
};

}  // namespace wam
