// torchvision's ColorJitter for float pictures in [0, 1]: brightness, contrast, saturation and hue,
// in an order and by amounts drawn once per sample.
#pragma once

#include <array>
#include <span>

#include "wam/base/philox.h"
#include "wam/data/embodiment.h"

namespace wam::data {

enum class JitterPart { kBrightness = 0, kContrast = 1, kSaturation = 2, kHue = 3 };

struct JitterDraw {
  std::array<JitterPart, 4> order = {JitterPart::kBrightness, JitterPart::kContrast,
                                     JitterPart::kSaturation, JitterPart::kHue};
  // Indexed by JitterPart: factors around 1, and a shift around 0 for the hue (1 is a full turn).
  std::array<double, 4> amount = {1, 1, 1, 0};
  std::array<bool, 4> enabled = {false, false, false, false};
  bool any() const { return enabled[0] || enabled[1] || enabled[2] || enabled[3]; }
};

// Uniform in [max(0, 1 - x), 1 + x] and, for the hue, [-x, x]; every order equally likely. Always
// draws the same number of values, so that one option does not change the others' draws.
JitterDraw draw_jitter(const JitterOptions& options, Random& random);

// One picture as three planes of equal length, changed in place. The contrast's mean is taken over
// this picture alone.
struct RgbPlanes {
  std::span<float> r, g, b;
};
void apply_jitter(const JitterDraw& draw, RgbPlanes picture);

// The parts, as torchvision's adjust_* functions.
void adjust_brightness(RgbPlanes picture, double factor);
void adjust_contrast(RgbPlanes picture, double factor);
void adjust_saturation(RgbPlanes picture, double factor);
void adjust_hue(RgbPlanes picture, double shift);

}  // namespace wam::data
