// Mean and standard deviation of the raw latents of the published Wan autoencoders, by channel.
#pragma once

#include <span>

#include "wam/models/vae_config.h"

namespace wam {

struct LatentNormalisation {
  std::span<const double> mean, std;
};
const LatentNormalisation& vae_normalisation(VaeKind kind);

}  // namespace wam
