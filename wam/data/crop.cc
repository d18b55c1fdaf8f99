#include "wam/data/crop.h"

#include <algorithm>

#include "wam/base/check.h"

namespace wam::data {
namespace {

int64_t cropped_side(int64_t side, double scale) {
  WAM_CHECK(side > 0 && scale > 0 && scale <= 1) << side << " * " << scale;
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(side) * scale));
}

// Half, rounded to even where it ends in .5: Python's round().
int64_t half_to_even(int64_t value) {
  const int64_t half = value / 2;
  return value % 2 == 1 && half % 2 == 1 ? half + 1 : half;
}

}  // namespace

CropBox center_crop(int64_t height, int64_t width, double scale) {
  const int64_t h = cropped_side(height, scale), w = cropped_side(width, scale);
  return {half_to_even(height - h), half_to_even(width - w), h, w};
}

CropBox random_crop(int64_t height, int64_t width, double scale, Random& random) {
  const int64_t h = cropped_side(height, scale), w = cropped_side(width, scale);
  const auto top = static_cast<int64_t>(random.below(static_cast<uint64_t>(height - h + 1)));
  const auto left = static_cast<int64_t>(random.below(static_cast<uint64_t>(width - w + 1)));
  return {top, left, h, w};
}

}  // namespace wam::data
