// A linear map from latents to pixels, fitted by ridge regression: lets a person look at predicted
// latents of an encoder that has no trained decoder (the built-in world's). Each latent pixel and
// its eight neighbours give the pixels of its stride x stride patch in the last frame it covers.
#pragma once

#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam::train {

class PixelReadout {
 public:
  PixelReadout(int64_t channels, int64_t stride);
  // latents f32 [F, h, w, C]; frames u8 [4 (F - 1) + 1, h * stride, w * stride, 3].
  void add(const HostTensor& latents, const HostTensor& frames);
  // After the last add().
  void fit();
  // -> u8 [F, h * stride, w * stride, 3].
  HostTensor decode(const HostTensor& latents) const;

 private:
  void features(const HostTensor& latents, int64_t frame, int64_t row, int64_t column,
                std::vector<double>& out) const;
  int64_t channels_, stride_, inputs_, outputs_;
  std::vector<double> gram_, cross_, weights_;  // [inputs, inputs], [inputs, outputs]
};

}  // namespace wam::train
