// Private to the transforms: bytes of a row of pixels as floats in [0, 1].
#pragma once

#include <cstdint>
#include <span>

namespace wam::data {

// rgb [w, 3] -> pixels [w, 4] = byte / 255 to the bit; the fourth is 0 or left as it is.
void unpack_pixels(std::span<const uint8_t> rgb, std::span<float> pixels);

}  // namespace wam::data
