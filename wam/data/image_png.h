// Private to image_codec.cc: PNG through libpng. Bytes are known to start as a PNG does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wam/data/image_codec.h"

namespace wam::data {

ImageSize read_png_size(std::span<const std::byte> bytes, const std::string& where);
// Throws DataError when the picture's size is not `size`.
void decode_png(std::span<const std::byte> bytes, const std::string& where, ImageSize size,
                std::span<uint8_t> rgb_hwc);
std::vector<std::byte> encode_png_rows(std::span<const uint8_t> rgb_hwc, ImageSize size,
                                       int compression_level);

}  // namespace wam::data
