// Picture transforms against torch's and torchvision's numbers (transform_golden.inc).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "wam/base/error.h"
#include "wam/data/tiling.h"
#include "wam/data/unpack_pixels.h"
#include "wam/data/view_transform.h"

namespace wam::data {
namespace {

#include "wam/data/transform_golden.inc"

// Pixel (y, x, c) of the generating script's pictures.
uint8_t test_pixel(int64_t y, int64_t x, int64_t c) {
  return static_cast<uint8_t>((37 * x + 91 * y + 53 * c + 11 * ((x * y) % 17)) % 256);
}

std::vector<uint8_t> test_frame(int64_t h, int64_t w) {
  std::vector<uint8_t> frame;
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x)
      for (int64_t c = 0; c < 3; ++c) frame.push_back(test_pixel(y, x, c));
  return frame;
}

std::vector<float> test_planes(int64_t h, int64_t w) {
  std::vector<float> planes;
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t y = 0; y < h; ++y)
      for (int64_t x = 0; x < w; ++x)
        planes.push_back(static_cast<float>(test_pixel(y, x, c)) / 255.0f);
  return planes;
}

void fill_test_row(int64_t y, std::span<float> row) {
  for (int64_t x = 0; 4 * x < std::ssize(row); ++x)
    for (int64_t c = 0; c < 3; ++c)
      row[static_cast<size_t>(4 * x + c)] = static_cast<float>(test_pixel(y, x, c)) / 255.0f;
}

// Values lie in [0, 1]. Every step (weight, product, sum) of either side rounds to float32 once;
// torch may fuse products into sums and sum its means in another order.
double bound(int64_t roundings) {
  return static_cast<double>(roundings) * std::numeric_limits<float>::epsilon();
}

template <size_t N>
void expect_near(std::span<const float> got, const float (&want)[N], double tolerance) {
  ASSERT_EQ(got.size(), N);
  for (size_t i = 0; i < N; ++i) ASSERT_NEAR(got[i], want[i], tolerance) << "at " << i;
}

template <size_t N>
void expect_antialias(int64_t h, int64_t w, int64_t out_h, int64_t out_w, const float (&want)[N]) {
  std::vector<float> out(static_cast<size_t>(3 * out_h * out_w)), scratch;
  AntialiasResize(h, w, out_h, out_w).run(fill_test_row, out, scratch);
  // A weight takes about 6 roundings, of which the sum of the taps' weights is a part.
  const int64_t taps = antialias_taps(h, out_h).num_taps + antialias_taps(w, out_w).num_taps;
  expect_near(out, want, bound(2 * taps + 12));
}

template <size_t N>
void expect_bilinear(int64_t h, int64_t w, int64_t out_h, int64_t out_w, const float (&want)[N]) {
  std::vector<float> out(static_cast<size_t>(3 * out_h * out_w));
  resize_bilinear(test_planes(h, w), 3, h, w, out_h, out_w, out);
  // The position's rounding moves a weight by half an ulp of the position (below 64).
  expect_near(out, want, bound(64));
}

TEST(Resize, AntialiasEqualsTorch) {
  expect_antialias(13, 17, 5, 6, kAntialias0);
  expect_antialias(7, 6, 9, 11, kAntialias1);
  expect_antialias(40, 9, 6, 9, kAntialias2);
  expect_antialias(5, 64, 8, 3, kAntialias3);
}

TEST(Resize, BilinearEqualsTorch) {
  expect_bilinear(13, 17, 5, 6, kBilinear0);
  expect_bilinear(7, 6, 9, 11, kBilinear1);
  expect_bilinear(40, 9, 6, 9, kBilinear2);
  expect_bilinear(5, 64, 8, 3, kBilinear3);
}

TEST(Resize, SameSizeIsACopy) {
  const std::vector<float> in = test_planes(6, 7);
  std::vector<float> out(in.size()), scratch;
  AntialiasResize(6, 7, 6, 7).run(fill_test_row, out, scratch);
  EXPECT_EQ(in, out);
}

TEST(Resize, TapsStayInsideTheRow) {
  for (int64_t in : {1, 2, 3, 7, 64, 243}) {
    for (int64_t out : {1, 2, 5, 64, 256}) {
      const ResizeTaps taps = antialias_taps(in, out);
      for (int32_t start : taps.starts) {
        EXPECT_GE(start, 0);
        EXPECT_LE(start + taps.num_taps, in);
      }
    }
  }
}

TEST(ModelInput, ScalesThenResizes) {
  HostTensor frames(DType::kU8, {2, 4, 6, 3});
  for (int64_t t = 0; t < 2; ++t) {
    const auto frame = test_frame(4, 6);
    std::copy(frame.begin(), frame.end(), frames.as<uint8_t>().begin() + t * 72);
  }
  const HostTensor same = frames_to_model_input(frames, 4, 6);
  EXPECT_EQ(same.shape(), (Shape{3, 2, 4, 6}));
  const float pixel = static_cast<float>(test_pixel(1, 2, 2));
  EXPECT_NEAR(same.as<float>()[(2 * 2 + 1) * 24 + 6 + 2], pixel / 127.5f - 1, bound(4));
  const HostTensor larger = frames_to_model_input(frames, 8, 12);
  std::vector<float> want(static_cast<size_t>(8 * 12));
  resize_bilinear(same.as<float>().subspan(24, 24), 1, 4, 6, 8, 12, want);
  const auto got = larger.as<float>().subspan(96, 96);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin()));
}

template <size_t N>
void expect_jitter(void (*adjust)(RgbPlanes, double), double amount, const float (&want)[N]) {
  std::vector<float> p = test_planes(4, 5);
  const std::span<float> all(p);
  adjust({all.subspan(0, 20), all.subspan(20, 20), all.subspan(40, 20)}, amount);
  // Hue: at most 20 roundings, the division by a small range excepted; the picture has none.
  expect_near(p, want, bound(32));
}

TEST(Jitter, PartsEqualTorchvision) {
  expect_jitter(adjust_brightness, 1.25, kBrightness);
  expect_jitter(adjust_contrast, 0.7, kContrast);
  expect_jitter(adjust_saturation, 1.4, kSaturation);
  expect_jitter(adjust_hue, 0.07, kHueUp);
  expect_jitter(adjust_hue, -0.08, kHueDown);
}

TEST(Jitter, HueLeavesGrayAlone) {
  std::vector<float> p = {0, 1, 0.25f, 0.5f, 0, 1, 0.25f, 0.5f, 0, 1, 0.25f, 0.5f};
  const std::span<float> all(p);
  adjust_hue({all.subspan(0, 4), all.subspan(4, 4), all.subspan(8, 4)}, 0.08);
  expect_near(p, kHueFlat, 0);
}

TEST(Jitter, DrawsStayInRangeAndVaryTheOrder) {
  const JitterOptions options;
  std::array<int, 4> first_counts{};
  for (uint64_t i = 0; i < 400; ++i) {
    Random random(7, RandomUse::kJitter, 0, i);
    const JitterDraw draw = draw_jitter(options, random);
    ++first_counts[static_cast<size_t>(draw.order[0])];
    EXPECT_LE(std::abs(draw.amount[0] - 1), options.brightness);
    EXPECT_LE(std::abs(draw.amount[1] - 1), options.contrast);
    EXPECT_LE(std::abs(draw.amount[2] - 1), options.saturation);
    EXPECT_LE(std::abs(draw.amount[3]), options.hue);
  }
  for (int count : first_counts) EXPECT_GT(count, 60);
}

TEST(Jitter, ZeroWidthLeavesAPartOut) {
  Random random(7, RandomUse::kJitter, 0, 0);
  const JitterDraw draw =
      draw_jitter({.brightness = 0, .contrast = 0, .saturation = 0.5, .hue = 0}, random);
  EXPECT_EQ(draw.enabled, (std::array<bool, 4>{false, false, true, false}));
}

TEST(Crop, SizesAndPlaces) {
  EXPECT_EQ(center_crop(256, 256, 0.95), (CropBox{6, 6, 243, 243}));  // 6.5 rounds to even
  EXPECT_EQ(center_crop(180, 320, 0.95), (CropBox{4, 8, 171, 304}));  // 4.5 too
  EXPECT_EQ(center_crop(5, 5, 1), (CropBox{0, 0, 5, 5}));
  EXPECT_EQ(center_crop(1, 1, 0.1), (CropBox{0, 0, 1, 1}));
  bool at_start = false, at_end = false;
  for (uint64_t i = 0; i < 500; ++i) {
    Random random(1, RandomUse::kCrop, 0, i);
    const CropBox box = random_crop(256, 200, 0.95, random);
    EXPECT_TRUE(box.top >= 0 && box.top <= 13 && box.left >= 0 && box.left <= 10);
    at_start |= box.top == 0;
    at_end |= box.top == 13;
  }
  EXPECT_TRUE(at_start && at_end);
}

PictureDraw chain_draw() {
  PictureDraw draw;
  draw.crop = {2, 1, 19, 15};
  draw.jitter.order = {JitterPart::kHue, JitterPart::kContrast, JitterPart::kBrightness,
                       JitterPart::kSaturation};
  draw.jitter.amount = {0.9, 1.3, 0.6, -0.05};
  draw.jitter.enabled = {true, true, true, true};
  return draw;
}

TEST(ViewTransform, WholeChainEqualsTorchvision) {
  const PictureOptions options{.view_height = 12, .view_width = 10};
  ViewTransform transform(options, 21, 17, chain_draw());
  std::vector<uint8_t> view(12 * 10 * 3);
  transform.run(test_frame(21, 17), view);
  for (size_t i = 0; i < view.size(); ++i) {
    // Truncation may fall on the other side where the value is an integer up to rounding.
    const double exact = 255.0 * kChain[(i % 3) * 120 + i / 3];
    const bool edge = std::abs(exact - std::round(exact)) < 255 * bound(64);
    EXPECT_NEAR(view[i], kChainBytes[i], edge ? 1 : 0) << "at " << i;
  }
}

TEST(ViewTransform, DrawIsAPureFunctionOfItsKey) {
  const PictureOptions options{.view_height = 12, .view_width = 10};
  const PictureDraw a = draw_picture(options, 100, 100, true, {1, 2, 3});
  const PictureDraw b = draw_picture(options, 100, 100, true, {1, 2, 3});
  const PictureDraw c = draw_picture(options, 100, 100, true, {1, 2, 4});
  EXPECT_EQ(a.crop, b.crop);
  EXPECT_EQ(a.jitter.amount, b.jitter.amount);
  EXPECT_NE(a.jitter.amount, c.jitter.amount);
  const PictureDraw eval = draw_picture(options, 100, 100, false, {1, 2, 3});
  EXPECT_FALSE(eval.jitter.any());
  EXPECT_EQ(eval.crop, center_crop(100, 100, 0.95));
}

// View v of 1 x 2 pixels with the values 10 v + x.
std::vector<uint8_t> small_view(int v) {
  std::vector<uint8_t> view;
  for (int x = 0; x < 2; ++x)
    for (int c = 0; c < 3; ++c) view.push_back(static_cast<uint8_t>(10 * (v + 1) + x));
  return view;
}

// First channel of the tiled picture of `num_views` small views.
std::vector<int> tiled(Tiling tiling, int num_views, int64_t pixels) {
  std::vector<uint8_t> picture(static_cast<size_t>(pixels * 3), 255);
  for (int v = 0; v < num_views; ++v) place_view(tiling, v, 1, 2, small_view(v), picture);
  blacken_unused(tiling, num_views, 1, 2, picture);
  std::vector<int> first;
  for (size_t i = 0; i < picture.size(); i += 3) first.push_back(picture[i]);
  return first;
}

TEST(Tiling, Layouts) {
  EXPECT_EQ(tiled(Tiling::kSingle, 1, 2), (std::vector<int>{10, 11}));
  EXPECT_EQ(tiled(Tiling::kSideBySide, 2, 4), (std::vector<int>{10, 11, 20, 21}));
  EXPECT_EQ(tiled(Tiling::kWristOnTop, 3, 8), (std::vector<int>{30, 30, 31, 31, 10, 11, 20, 21}));
  EXPECT_EQ(tiled(Tiling::kGrid, 3, 8), (std::vector<int>{10, 11, 30, 31, 20, 21, 0, 0}));
  EXPECT_EQ(tiled(Tiling::kGrid, 2, 8), (std::vector<int>{10, 11, 0, 0, 20, 21, 0, 0}));
}

TEST(TileViews, UsesOneDrawForAllViews) {
  Embodiment e = embodiment_preset("libero_sim");
  e.picture.view_height = e.picture.view_width = 8;
  HostTensor frames(DType::kU8, {2, 16, 16, 3});
  for (int64_t t = 0; t < 2; ++t) {
    const auto frame = test_frame(16, 16);
    std::copy(frame.begin(), frame.end(), frames.as<uint8_t>().begin() + t * 768);
  }
  const HostTensor views[] = {frames, frames};
  const HostTensor out = tile_views(e, views, true, {5, 6, 7});
  EXPECT_EQ(out.shape(), (Shape{2, 8, 16, 3}));
  const auto bytes = out.as<uint8_t>();
  for (int64_t row = 0; row < 16; ++row) {
    const auto left = bytes.subspan(static_cast<size_t>(row * 48), 24);
    EXPECT_TRUE(std::equal(left.begin(), left.end(), left.end()));
  }
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 384, bytes.begin() + 384));
}

TEST(TileViews, RefusesCamerasOfDifferentSizes) {
  const Embodiment e = embodiment_preset("libero_sim");
  const HostTensor views[] = {HostTensor::zeros(DType::kU8, {1, 16, 16, 3}),
                              HostTensor::zeros(DType::kU8, {1, 16, 12, 3})};
  EXPECT_THROW(tile_views(e, views, true, {}), DataError);
}

// Every byte in every place of a row, and nothing written past its end.
TEST(UnpackTest, IsTheDivisionToTheBit) {
  for (size_t width = 1; width < 20; ++width) {
    for (int start = 0; start < 256; ++start) {
      std::vector<uint8_t> rgb(3 * width);
      for (size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<uint8_t>(start + 7 * i);
      std::vector<float> pixels(4 * width + 1, -1.0f);
      unpack_pixels(rgb, pixels);
      for (size_t i = 0; i < rgb.size(); ++i) {
        ASSERT_EQ(pixels[i / 3 * 4 + i % 3], static_cast<float>(rgb[i]) / 255.0f) << int{rgb[i]};
      }
      ASSERT_EQ(pixels.back(), -1.0f);
    }
  }
}

}  // namespace
}  // namespace wam::data
