// Cropping by torchvision's rules: the size is int(scale * side), the place is uniform in training
// and central in evaluation.
#pragma once

#include <cstdint>

#include "wam/base/philox.h"

namespace wam::data {

struct CropBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
  bool operator==(const CropBox&) const = default;
};

// 0 < scale <= 1; at least one pixel is kept.
CropBox center_crop(int64_t height, int64_t width, double scale);
// Every place of the box is equally likely; draws two numbers.
CropBox random_crop(int64_t height, int64_t width, double scale, Random& random);

}  // namespace wam::data
