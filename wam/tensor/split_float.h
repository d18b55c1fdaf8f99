// A float32 in two halves of 16 bits: its nearest bf16, ties away from zero, and the signed rest:
// bits = (high << 16) + low. Every float32 comes back as it was.
#pragma once

#include <bit>
#include <cstdint>

namespace wam {

struct SplitFloat {
  uint16_t high;  // bf16
  int16_t low;
};

inline SplitFloat split_float(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x8000u) >> 16;
  return {static_cast<uint16_t>(rounded),
          static_cast<int16_t>(static_cast<uint16_t>(bits - (rounded << 16)))};
}

inline float join_float(uint16_t high, int16_t low) {
  return std::bit_cast<float>((uint32_t{high} << 16) + static_cast<uint32_t>(int32_t{low}));
}

}  // namespace wam
