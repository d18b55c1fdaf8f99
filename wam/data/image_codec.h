// Still pictures: PNG and JPEG to RGB, RGB to PNG and JPEG. Files are untrusted: sizes are bounded
// before anything is allocated, and every fault is a DataError that starts with `where`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "wam/tensor/host_tensor.h"

namespace wam::data {

// Pictures wider or higher than this are refused.
inline constexpr int64_t kMaxImageSide = 16384;

enum class ImageFormat { kPng, kJpeg, kUnknown };
// By the first bytes.
ImageFormat sniff_image_format(std::span<const std::byte> bytes);

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};
// Size from the header alone, without decoding.
ImageSize read_image_size(std::span<const std::byte> bytes, const std::string& where);

// -> [h, w, 3] u8 RGB. Gray is repeated, 16-bit PNG is cut to its high byte, alpha is dropped (as
// PIL's convert("RGB") does), palettes are resolved.
HostTensor decode_image(std::span<const std::byte> bytes, const std::string& where);
// Decodes into memory of the caller, `size` being what read_image_size() said.
void decode_image_into(std::span<const std::byte> bytes, const std::string& where, ImageSize size,
                       std::span<uint8_t> rgb_hwc);

// rgb: height*width*3 bytes. Lossless; compression level 0 (none) to 9.
std::vector<std::byte> encode_png(std::span<const uint8_t> rgb_hwc, int64_t height, int64_t width,
                                  int compression_level = 3);
// quality 1 to 100, 4:2:0.
std::vector<std::byte> encode_jpeg(std::span<const uint8_t> rgb_hwc, int64_t height, int64_t width,
                                   int quality = 90);

}  // namespace wam::data
