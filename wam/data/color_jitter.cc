#include "wam/data/color_jitter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace wam::data {
namespace {

// Loops below have no branches and no calls, so that the compiler turns them into vector code.

inline float clamp01(float x) {
  x = x > 0.0f ? x : 0.0f;
  return x < 1.0f ? x : 1.0f;
}

inline float gray(float r, float g, float b) { return r * 0.2989f + g * 0.587f + b * 0.114f; }

// The means are summed in double in fixed chunks: the order does not depend on the vector width.
double mean_gray(const RgbPlanes& p) {
  constexpr size_t kChunk = 64;
  std::array<double, kChunk> sums{};
  const size_t n = p.r.size(), whole = n / kChunk * kChunk;
  for (size_t i = 0; i < whole; i += kChunk) {
    for (size_t j = 0; j < kChunk; ++j) sums[j] += gray(p.r[i + j], p.g[i + j], p.b[i + j]);
  }
  double total = 0;
  for (double sum : sums) total += sum;
  for (size_t i = whole; i < n; ++i) total += gray(p.r[i], p.g[i], p.b[i]);
  return n == 0 ? 0 : total / static_cast<double>(n);
}

void scale_plane(std::span<float> plane, float factor) {
  for (float& x : plane) x = clamp01(x * factor);
}

void blend_plane(std::span<float> plane, float other, float ratio, float rest) {
  const float added = other * rest;
  for (float& x : plane) x = clamp01(x * ratio + added);
}

struct Hsv {
  float h, s, v;
};

inline float larger(float a, float b) { return a > b ? a : b; }
inline float smaller(float a, float b) { return a < b ? a : b; }
inline float pick(bool yes, float a, float b) { return yes ? a : b; }

inline Hsv to_hsv(float r, float g, float b) {
  const float high = larger(larger(r, g), b), low = smaller(smaller(r, g), b);
  const float range = high - low;
  const bool flat = high == low;
  const float divisor = pick(flat, 1.0f, range);
  const float rc = (high - r) / divisor, gc = (high - g) / divisor, bc = (high - b) / divisor;
  float sector = gc + 4.0f - rc;
  sector = pick(high == g, rc + 2.0f - bc, sector);
  sector = pick(high == r, bc - gc, sector);
  const float turned = sector * (1.0f / 6.0f) + 1.0f;
  return {turned - std::floor(turned), range / pick(flat, 1.0f, high), high};
}

// Each channel is one of v, p, q, t by the sector k of the hue. Sector 6, a hue rounded up to 1,
// is sector 0: only the last line of each channel's picks names it.
inline void to_rgb(const Hsv& c, float& r, float& g, float& b) {
  const float h6 = c.h * 6.0f, k = std::floor(h6), f = h6 - k;
  const float sf = c.s * f, rest = 1.0f - c.s, v = c.v;
  const float p = clamp01(rest * v), q = clamp01((1.0f - sf) * v), t = clamp01((sf + rest) * v);
  float red = pick(k < 2.0f, q, pick(k < 4.0f, p, t));    // sectors 1, 2-3, 4
  float green = pick(k < 3.0f, v, pick(k < 4.0f, q, p));  // sectors 1-2, 3, 4-5
  float blue = pick(k < 2.0f, p, pick(k < 3.0f, t, v));   // sectors 0-1, 2, 3-4
  blue = pick(k == 5.0f, q, blue);
  const float first = pick(k == 6.0f, 0.0f, k);
  r = pick(first == 0.0f, v, pick(k == 5.0f, v, red));
  g = pick(first == 0.0f, t, green);
  b = pick(first == 0.0f, p, blue);
}

void apply_part(JitterPart part, double amount, RgbPlanes picture) {
  switch (part) {
    case JitterPart::kBrightness:
      return adjust_brightness(picture, amount);
    case JitterPart::kContrast:
      return adjust_contrast(picture, amount);
    case JitterPart::kSaturation:
      return adjust_saturation(picture, amount);
    case JitterPart::kHue:
      return adjust_hue(picture, amount);
  }
}

}  // namespace

JitterDraw draw_jitter(const JitterOptions& options, Random& random) {
  const std::array<double, 4> widths = {options.brightness, options.contrast, options.saturation,
                                        options.hue};
  JitterDraw draw;
  for (uint64_t left = 4; left > 1; --left)
    std::swap(draw.order[left - 1], draw.order[random.below(left)]);
  for (size_t i = 0; i < 4; ++i) {
    const double center = i == 3 ? 0 : 1;
    const double low = i == 3 ? -widths[i] : std::max(0.0, 1 - widths[i]);
    const double high = center + widths[i];
    const double u = random.uniform();
    draw.enabled[i] = widths[i] > 0;
    if (draw.enabled[i]) draw.amount[i] = low + (high - low) * u;
  }
  return draw;
}

void apply_jitter(const JitterDraw& draw, RgbPlanes picture) {
  for (JitterPart part : draw.order) {
    const auto i = static_cast<size_t>(part);
    if (draw.enabled[i]) apply_part(part, draw.amount[i], picture);
  }
}

void adjust_brightness(RgbPlanes picture, double factor) {
  for (std::span<float> plane : {picture.r, picture.g, picture.b}) {
    scale_plane(plane, static_cast<float>(factor));
  }
}

void adjust_contrast(RgbPlanes picture, double factor) {
  const auto mean = static_cast<float>(mean_gray(picture));
  for (std::span<float> plane : {picture.r, picture.g, picture.b}) {
    blend_plane(plane, mean, static_cast<float>(factor), static_cast<float>(1 - factor));
  }
}

void adjust_saturation(RgbPlanes picture, double factor) {
  const auto ratio = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  float* __restrict r = picture.r.data();
  float* __restrict g = picture.g.data();
  float* __restrict b = picture.b.data();
  const size_t n = picture.r.size();
  for (size_t i = 0; i < n; ++i) {
    const float added = gray(r[i], g[i], b[i]) * rest;
    r[i] = clamp01(r[i] * ratio + added);
    g[i] = clamp01(g[i] * ratio + added);
    b[i] = clamp01(b[i] * ratio + added);
  }
}

void adjust_hue(RgbPlanes picture, double shift) {
  const auto turn = static_cast<float>(shift);
  float* __restrict r = picture.r.data();
  float* __restrict g = picture.g.data();
  float* __restrict b = picture.b.data();
  const size_t n = picture.r.size();
  for (size_t i = 0; i < n; ++i) {
    Hsv color = to_hsv(r[i], g[i], b[i]);
    const float h = color.h + turn;
    color.h = h - std::floor(h);
    to_rgb(color, r[i], g[i], b[i]);
  }
}

}  // namespace wam::data
