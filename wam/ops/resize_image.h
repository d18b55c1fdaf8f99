// Pictures in another size, without antialiasing, sampled as PyTorch's interpolate does with
// align_corners=False: output pixel i lies at (i + 0.5) * in / out - 0.5 of the input, computed in
// the type of x; outside the picture its edge is repeated. Inference only.
#pragma once

#include "wam/graph/builder.h"

namespace wam {

enum class ResizeFilter : uint8_t {
  kBilinear,  // two taps
  kBicubic,   // four taps, Keys' kernel with a = -0.75
};

// x [..., H, W, C], f32 or f64 -> [..., height, width, C]; x itself if it has that size already.
ValueId resize_image(Builder& b, ValueId x, int64_t height, int64_t width, ResizeFilter filter);

}  // namespace wam
