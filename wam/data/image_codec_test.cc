#include "wam/data/image_codec.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cmath>
#include <functional>

#include "wam/base/error.h"
#include "wam/base/files.h"
#include "wam/base/philox.h"

namespace wam::data {
namespace {

std::vector<uint8_t> smooth_picture(int height, int width) {
  std::vector<uint8_t> rgb;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      rgb.push_back(static_cast<uint8_t>(x * 255 / width));
      rgb.push_back(static_cast<uint8_t>(y * 255 / height));
      rgb.push_back(static_cast<uint8_t>((x + y) * 127 / (width + height)));
    }
  }
  return rgb;
}

std::span<const std::byte> bytes_of(const std::vector<std::byte>& bytes) { return bytes; }

bool fails(const std::function<void()>& function) {
  try {
    function();
    return false;
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()).find("[place]"), 0u) << error.what();
    return true;
  }
}

TEST(ImageCodecTest, PngIsLossless) {
  for (const int width : {1, 2, 31, 64}) {
    const std::vector<uint8_t> rgb = smooth_picture(17, width);
    const std::vector<std::byte> png = encode_png(rgb, 17, width);
    EXPECT_EQ(sniff_image_format(png), ImageFormat::kPng);
    EXPECT_EQ(read_image_size(png, "place"), (ImageSize{17, width}));
    const HostTensor picture = decode_image(png, "place");
    ASSERT_EQ(picture.shape(), Shape({17, width, 3}));
    EXPECT_TRUE(std::equal(rgb.begin(), rgb.end(), picture.as<uint8_t>().begin()));
  }
}

TEST(ImageCodecTest, JpegIsClose) {
  const std::vector<uint8_t> rgb = smooth_picture(48, 64);
  const std::vector<std::byte> jpeg = encode_jpeg(rgb, 48, 64, 95);
  EXPECT_EQ(sniff_image_format(jpeg), ImageFormat::kJpeg);
  const HostTensor picture = decode_image(jpeg, "place");
  double error = 0;
  for (size_t i = 0; i < rgb.size(); ++i) {
    error += std::abs(int{rgb[i]} - int{picture.as<uint8_t>()[i]});
  }
  // Smooth gradients at quality 95: about one grey level on average.
  EXPECT_LT(error / static_cast<double>(rgb.size()), 2.0);
}

// A PNG of any libpng format written through libpng's simplified interface.
std::vector<std::byte> simple_png(const std::vector<uint8_t>& pixels, uint32_t format, int height,
                                  int width) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  std::vector<std::byte> bytes(size);
  png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr);
  bytes.resize(size);
  return bytes;
}

TEST(ImageCodecTest, GrayIsRepeatedAndAlphaDropped) {
  const HostTensor gray = decode_image(simple_png({10, 200}, PNG_FORMAT_GRAY, 1, 2), "place");
  EXPECT_EQ(gray.as<uint8_t>()[0], 10);
  EXPECT_EQ(gray.as<uint8_t>()[2], 10);
  EXPECT_EQ(gray.as<uint8_t>()[5], 200);
  const HostTensor rgba =
      decode_image(simple_png({1, 2, 3, 0, 4, 5, 6, 255}, PNG_FORMAT_RGBA, 1, 2), "place");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(rgba.as<uint8_t>()[i], i + 1);
}

TEST(ImageCodecTest, CutPicturesAreErrors) {
  const std::vector<uint8_t> rgb = smooth_picture(40, 40);
  for (const auto& whole : {encode_png(rgb, 40, 40), encode_jpeg(rgb, 40, 40)}) {
    for (size_t length = 0; length + 2 < whole.size(); length += 13) {
      EXPECT_TRUE(fails([&] { decode_image(bytes_of(whole).first(length), "place"); })) << length;
    }
  }
}

TEST(ImageCodecTest, OtherBytesAreErrors) {
  const std::vector<std::byte> bytes(100, std::byte{'x'});
  EXPECT_TRUE(fails([&] { decode_image(bytes, "place"); }));
  EXPECT_TRUE(fails([&] { decode_image({}, "place"); }));
}

// A header that claims 2^31 - 1 pixels a side must not be believed.
TEST(ImageCodecTest, HugeSizesAreRefused) {
  std::vector<std::byte> png = encode_png(smooth_picture(4, 4), 4, 4);
  for (size_t i = 16; i < 24; ++i) png[i] = std::byte{0x7F};
  EXPECT_TRUE(fails([&] { decode_image(png, "place"); }));
}

TEST(ImageCodecTest, FlippedBytesNeverCrash) {
  const std::vector<uint8_t> rgb = smooth_picture(24, 24);
  Random random(9, RandomUse::kTest, 0, 0);
  for (const auto& whole : {encode_png(rgb, 24, 24), encode_jpeg(rgb, 24, 24)}) {
    for (int round = 0; round < 500; ++round) {
      std::vector<std::byte> bytes = whole;
      for (int i = 0; i < 3; ++i) bytes[random.below(bytes.size())] = std::byte(random.next_u32());
      fails([&] { decode_image(bytes, "place"); });
    }
  }
}

TEST(ImageCodecTest, AnotherSizeThanAskedIsAnError) {
  const std::vector<std::byte> png = encode_png(smooth_picture(4, 6), 4, 6);
  std::vector<uint8_t> target(6 * 4 * 3);
  EXPECT_TRUE(fails([&] { decode_image_into(png, "place", {6, 4}, target); }));
}

}  // namespace
}  // namespace wam::data
