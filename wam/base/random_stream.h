// The blocks of the stream that a Random (base/philox.h) of the same numbers draws from, in any
// order: for filling large tensors by many threads, on a GPU too. Two uniform() to a block: of words
// 0, 1 and 2, 3, the first the upper half.
#pragma once

#include "wam/base/philox.h"

namespace wam {

struct RandomStream {
  uint32_t key0 = 0, key1 = 0;
  uint32_t step = 0;  // its lower half; the upper is in key1
  uint64_t index = 0;

  constexpr RandomStream() = default;
  constexpr RandomStream(uint64_t seed, RandomUse use, uint64_t at_step, uint64_t at_index)
      : key0(static_cast<uint32_t>(seed)),
        key1((static_cast<uint32_t>(seed >> 32) ^ (static_cast<uint32_t>(use) * 0x85EBCA6Bu)) +
             static_cast<uint32_t>(at_step >> 32) * 0x27D4EB2Fu),
        step(static_cast<uint32_t>(at_step)),
        index(at_index) {}

  constexpr PhiloxBlock block(uint64_t number) const {
    return philox({static_cast<uint32_t>(number), static_cast<uint32_t>(index),
                   static_cast<uint32_t>(index >> 32) ^ static_cast<uint32_t>(number >> 32), step},
                  key0, key1);
  }
  // uniform() number 2 * block + half.
  static constexpr double uniform(const PhiloxBlock& words, int half) {
    const uint64_t bits = uint64_t{words[2 * static_cast<size_t>(half)]} << 32 |
                          words[2 * static_cast<size_t>(half) + 1];
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
  }
};

}  // namespace wam
