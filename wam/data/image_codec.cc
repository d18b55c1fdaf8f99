#include "wam/data/image_codec.h"

#include <cstring>
#include <limits>

#include "wam/base/check.h"
#include "wam/base/error.h"
#include "wam/data/image_jpeg.h"
#include "wam/data/image_png.h"

namespace wam::data {
namespace {

// 64 Mpx: 200 MB decoded; far above any robot camera, far below what hurts.
constexpr int64_t kMaxPixels = int64_t{1} << 26;

ImageFormat require_format(std::span<const std::byte> bytes, const std::string& where) {
  const ImageFormat format = sniff_image_format(bytes);
  if (format == ImageFormat::kUnknown) {
    throw DataError({.where = where,
                     .what = "picture is neither PNG nor JPEG",
                     .got = std::to_string(bytes.size()) + " bytes of another format",
                     .expected = "PNG or JPEG",
                     .remedy = "Store the picture again as PNG."});
  }
  return format;
}

void check_size(ImageSize size, const std::string& where) {
  const bool good = size.height > 0 && size.width > 0 && size.height <= kMaxImageSide &&
                    size.width <= kMaxImageSide && size.height * size.width <= kMaxPixels;
  if (good) return;
  throw DataError({.where = where,
                   .what = "picture size out of bounds",
                   .got = std::to_string(size.height) + "x" + std::to_string(size.width),
                   .expected = "1 to " + std::to_string(kMaxImageSide) + " a side and at most " +
                               std::to_string(kMaxPixels) + " pixels",
                   .remedy = "Record smaller pictures, or repair the file."});
}

void check_pixels(std::span<const uint8_t> rgb, int64_t height, int64_t width) {
  WAM_CHECK(height > 0 && width > 0 && static_cast<int64_t>(rgb.size()) == height * width * 3)
      << rgb.size() << " bytes for " << height << "x" << width;
}

}  // namespace

ImageFormat sniff_image_format(std::span<const std::byte> bytes) {
  static constexpr unsigned char kPngMagic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  static constexpr unsigned char kJpegMagic[3] = {0xFF, 0xD8, 0xFF};
  if (bytes.size() >= 8 && std::memcmp(bytes.data(), kPngMagic, 8) == 0) return ImageFormat::kPng;
  if (bytes.size() >= 3 && std::memcmp(bytes.data(), kJpegMagic, 3) == 0) return ImageFormat::kJpeg;
  return ImageFormat::kUnknown;
}

ImageSize read_image_size(std::span<const std::byte> bytes, const std::string& where) {
  const ImageFormat format = require_format(bytes, where);
  const ImageSize size =
      format == ImageFormat::kPng ? read_png_size(bytes, where) : read_jpeg_size(bytes, where);
  check_size(size, where);
  return size;
}

void decode_image_into(std::span<const std::byte> bytes, const std::string& where, ImageSize size,
                       std::span<uint8_t> rgb_hwc) {
  check_size(size, where);
  check_pixels(rgb_hwc, size.height, size.width);
  if (require_format(bytes, where) == ImageFormat::kPng) {
    decode_png(bytes, where, size, rgb_hwc);
  } else {
    decode_jpeg(bytes, where, size, rgb_hwc);
  }
}

HostTensor decode_image(std::span<const std::byte> bytes, const std::string& where) {
  const ImageSize size = read_image_size(bytes, where);
  HostTensor picture(DType::kU8, {size.height, size.width, 3});
  decode_image_into(bytes, where, size, picture.as<uint8_t>());
  return picture;
}

std::vector<std::byte> encode_png(std::span<const uint8_t> rgb_hwc, int64_t height, int64_t width,
                                  int compression_level) {
  check_pixels(rgb_hwc, height, width);
  WAM_CHECK(compression_level >= 0 && compression_level <= 9) << compression_level;
  return encode_png_rows(rgb_hwc, {height, width}, compression_level);
}

std::vector<std::byte> encode_jpeg(std::span<const uint8_t> rgb_hwc, int64_t height, int64_t width,
                                   int quality) {
  check_pixels(rgb_hwc, height, width);
  WAM_CHECK(quality >= 1 && quality <= 100) << quality;
  return encode_jpeg_rows(rgb_hwc, {height, width}, quality);
}

}  // namespace wam::data
