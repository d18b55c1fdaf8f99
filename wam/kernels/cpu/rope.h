// One token's rotation, shared by rope and qk_norm_rope.
#pragma once

#include <cstdint>

namespace wam::cpu {

// Rotates `heads` heads of d channels by table [d/2, 2] = (cos, sin); y may be x.
template <typename T>
void rope_row(const T* x, const T* table, int64_t heads, int64_t d, bool inverse, T* y) {
  for (int64_t head = 0; head < heads; ++head) {
    const T* from = x + head * d;
    T* to = y + head * d;
    for (int64_t i = 0; i < d; i += 2) {
      const T cos = table[i], sin = inverse ? -table[i + 1] : table[i + 1];
      const T even = from[i], odd = from[i + 1];
      to[i] = even * cos - odd * sin;
      to[i + 1] = even * sin + odd * cos;
    }
  }
}

}  // namespace wam::cpu
